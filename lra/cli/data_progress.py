"""Progress while a set is read or made: a bar over its parts on a terminal, else lines.

Errors in the task's own code are told in one line, too.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from lra.cli.echo import echo
from tasks.sources.preparing import Watch

if TYPE_CHECKING:
    from lra.core.catalogue import Target


class Lines(Watch):
    """A line on standard error for each part, for each hundredth of very many."""

    def __init__(self, task: str) -> None:
        self.task = task
        self._parts = self._done = self._told = 0

    def waiting(self) -> None:
        """Say why nothing happens."""
        echo(f"{self.task}: waits for another process that prepares this set", err=True)

    def begun(self, parts: int, done: int) -> None:
        """Say how much is left where part is done."""
        self._parts, self._done = parts, done
        if done:
            echo(f"{self.task}: goes on after {done} of {parts} parts", err=True)

    def part(self, name: str) -> None:
        """Print a finished part."""
        self._done += 1
        hundredth = 100 * self._done // self._parts
        if self._parts <= 100 or hundredth > self._told:
            self._told = hundredth
            echo(f"[{self._done}/{self._parts}] {self.task}: {name}", err=True)

    def say(self, line: str) -> None:
        """Print a line on standard output."""
        echo(line)

    def close(self) -> None:
        """Leave the terminal to whoever writes next."""


class Bar(Lines):
    """A bar over the parts."""

    _bar: tqdm[Any] | None = None

    def begun(self, parts: int, done: int) -> None:
        """Show the bar."""
        super().begun(parts, done)
        self._bar = tqdm(
            total=parts, initial=done, desc=self.task, unit="part", file=sys.stderr, leave=False
        )

    def part(self, name: str) -> None:
        """Move the bar."""
        if self._bar is not None:
            self._bar.set_postfix_str(name, refresh=False)
            self._bar.update()

    def say(self, line: str) -> None:
        """Print a line above the bar."""
        with tqdm.external_write_mode(file=sys.stdout):
            super().say(line)

    def close(self) -> None:
        """Remove the bar from the terminal."""
        if self._bar is not None:
            self._bar.close()


def show_progress(task: str) -> Lines:
    """Return the progress that suits standard error."""
    return Bar(task) if sys.stderr.isatty() else Lines(task)


@contextmanager
def name_task_errors(target: Target) -> Iterator[None]:
    """Turn an error in a task's own code into one line with its place, as in a run; any other keeps
    its traceback."""
    from lra.core.errors import LraError
    from lra.core.traceback_place import place_of
    from lra.engine.process.error_text import named_line

    try:
        yield
    except LraError:
        raise
    except Exception as error:
        if not (inside := place_of(error, target.module)):
            raise
        raise LraError(f"task '{target.name}': {named_line(error)}{inside}") from error
