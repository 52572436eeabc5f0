"""The sets of a Long Range Arena release, one after another."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from lra.cli.echo import echo


def for_each_set(source: str, do: Callable[[str, Path], int]) -> int:
    """Call `do` with the task and the folder of each set of a release; return the worst exit code.
    A set that fails is one line of error and does not stop the others."""
    from lra.core.errors import LraError
    from lra.core.escape import escape_controls
    from tasks.sources.release import release_sets

    code = 0
    for task, folder in release_sets(source).items():
        try:
            code = max(code, do(task, folder))
        except LraError as error:
            code = max(code, error.exit_code)
            echo(f"lra: {escape_controls(f'{task}: {error}')}", err=True)
    return code
