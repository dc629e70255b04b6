"""`python -m accuacl` and the command `accuacl`: the command line, which Ctrl-C ends with one line from the start."""

import sys


def main() -> None:
    """Load the command line and run it."""
    try:
        from accuacl.cli import main as run_command

        run_command()
    except KeyboardInterrupt:  # while it was loading, or ending
        print("accuacl: interrupted.", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
