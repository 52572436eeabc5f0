"""Exit codes of commands, explained in the README. 2 is `UsageError`'s own."""

BROKEN_CLAIMS = 1
REGRESSION = 1
DEFECTS = 1
INCONCLUSIVE = 3
FAILED_CELLS = 4
INTERRUPTED = 130
CLOSED_PIPE = 141
"""Exit code of tools whose reader has stopped reading: 128 and the number of SIGPIPE."""
