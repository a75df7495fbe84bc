import sys
import traceback

from zodbshootout.errors import DEFECT


def run() -> None:
    """Run the command with the arguments of this process, and exit with the command's status."""
    try:
        from zodbshootout.cli.main import main
    except Exception:  # noqa: BLE001 - a broken installation must not exit with a verdict's status
        traceback.print_exc()
        sys.exit(DEFECT)
    sys.exit(main(sys.argv[1:]))


if __name__ == "__main__":
    run()
