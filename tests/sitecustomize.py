"""The module that every Python of a tested command imports at its start."""

import faulthandler

# SIGABRT shows the stacks of a command that takes too long, see tests/integration/stacks.py.
faulthandler.enable(2)
