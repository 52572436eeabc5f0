"""`python -m lra`."""

# Neither `from __future__` nor any module that Python has not loaded itself: until the current
# folder is last, an import may find a file of the user's that bears the name of a library.
import os
import sys


def main() -> int:
    """Run the command line; the exit code is the return value."""
    from lra.core.system import why_unsupported

    if why := why_unsupported():
        print(f"lra: {why}", file=sys.stderr)
        return 2
    if not _current_folder():
        print("lra: the current folder is gone; go to another", file=sys.stderr)
        return 2
    from lra.cli.main import run_command_line

    return run_command_line(sys.argv[1:])


def _current_folder() -> str:
    """Return the path of the current folder; empty where it was removed."""
    try:
        return os.getcwd()  # noqa: PTH109  pathlib is not loaded yet
    except FileNotFoundError:
        return ""


def _search_current_folder_last() -> None:
    """Let no `click.py` of the current folder stand for the library, which `python -m` looks for
    there first. The user's mechanisms are still found there.

    In the root of a clone it stays first: the arena's other packages belong to this very one.
    """
    here = _current_folder()
    root = os.path.dirname(os.path.dirname(__file__))  # noqa: PTH120
    if not sys.flags.safe_path and sys.path[0] == here != root:
        sys.path.append(sys.path.pop(0))


if __name__ == "__main__":
    _search_current_folder_last()
    sys.exit(main())
