"""The sets of a Long Range Arena release, one after the other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from lra.cli.echo import echo


def for_each_set(source: str, do: Callable[[str, Path], int]) -> int:
    """Do something with the task and the folder of each set of a release; return the worst of the
    exit codes. A set that fails is told in a line and does not stop the others."""
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
