#!/bin/sh
# For "git bisect run": say whether the commit that is checked out is slower than the installed package.
#
#     sh bisect.sh [FILE|URI ...] [BENCHMARK ...] [option ...]
#
# The arguments are those of "zodbshootout", without -o.  Variables of the environment:
#
#     LIMIT    how much longer a benchmark may take, or how much more it may cost (default: 5%)
#     METRIC   the cost to compare, such as trips (default: the time)

zodbshootout "$@" --against . --fail-fast &&
    zodbshootout compare last --environment installed "$(basename "$PWD")" \
        ${METRIC:+--metric "$METRIC"} --fail-above "${LIMIT:-5%}"

case $? in
    0) exit 0 ;;        # good
    1) exit 1 ;;        # bad
    2 | 3) exit 125 ;;  # the commit cannot be built or measured: git takes another one
    *) exit 255 ;;      # interrupted, or a defect: git ends the search
esac
