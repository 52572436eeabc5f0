"""`python -m lra`."""

# Neither `from __future__` nor any module that Python has not loaded itself: until the current
# folder is last, an import may find a file of the user's that bears the name of a library.
import os
import sys


def main() -> int:
    """Run the command line; the exit code is the return value."""
    if lacking := _lacking():
        words = f"this system has no {' and no '.join(lacking)}, which cells need to run"
        remedy = "use Linux, or WSL on Windows (README.md, Systems)"
        print(f"lra: {words}; {remedy}", file=sys.stderr)
        return 2
    from lra.cli.main import run_command_line

    return run_command_line(sys.argv[1:])


def _lacking() -> list[str]:
    """Return the parts of Python that this system lacks; Linux and macOS have all."""
    found = [] if hasattr(os, "fork") else ["os.fork"]
    try:
        import fcntl  # noqa: F401
    except ImportError:
        found.append("fcntl")
    return found


def _search_current_folder_last() -> None:
    """Let no `click.py` of the current folder stand for the library, which `python -m` looks for
    there first. The user's mechanisms are still found there.

    In the root of a clone it stays first: the arena's other packages belong to this very one.
    """
    here = os.getcwd()  # noqa: PTH109  pathlib is not loaded yet
    root = os.path.dirname(os.path.dirname(__file__))  # noqa: PTH120
    if not sys.flags.safe_path and sys.path[0] == here != root:
        sys.path.append(sys.path.pop(0))


if __name__ == "__main__":
    _search_current_folder_last()
    sys.exit(main())
