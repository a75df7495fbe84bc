import sys

from zodbshootout.cli.main import main


def run() -> None:
    """Run the command with the arguments of this process, and exit with its status."""
    sys.exit(main(sys.argv[1:]))


if __name__ == "__main__":
    run()
