"""Parts of Python that some systems lack; Linux and macOS have all."""

# No other import: `python -m lra` asks before it imports anything that could fail.
import os


def why_unsupported() -> str:
    """Return why the arena cannot work on this system, in one line; empty where it can."""
    lacking = [] if hasattr(os, "fork") else ["os.fork"]
    try:
        import fcntl  # noqa: F401
    except ImportError:
        lacking.append("fcntl")
    if not lacking:
        return ""
    return (
        f"this system has no {' and no '.join(lacking)}, which cells and stores need; use Linux, "
        "or WSL on Windows (README.md, Systems)"
    )
