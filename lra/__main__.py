"""`python -m lra`."""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command line; the exit code is the return value."""
    from lra.cli.main import run_command_line

    return run_command_line(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
