"""`python -m jittok` and the command `jittok`: imports nothing before Ctrl-C is told in one line."""

import sys


def run() -> int:
    """Run the command line; its exit status."""
    try:
        from jittok.cli import main

        return main()
    except KeyboardInterrupt:  # while modules were imported: `main` tells its own
        sys.stderr.write("jittok: interrupted\n")
        return 130


if __name__ == "__main__":
    raise SystemExit(run())
