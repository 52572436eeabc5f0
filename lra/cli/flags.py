"""Flags that several verbs share, spelled the same everywhere, with completion of our names."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from lra.cli.echo import echo
from lra.core.errors import UsageError, closest_names

_Command = TypeVar("_Command", bound=Callable[..., Any])

DEFAULT_STORE = Path("results/runs/default")
CHECK_STORE = Path("results/runs/check")
DEFAULT_BASELINES = Path("results/baselines")

_PAIRS = {"--data": ("TASK=PATH", "text=reviews/"), "--set": ("KEY=VALUE", "features=64")}
"""Flags that take pairs, with the form and an example of each."""

_TIME = re.compile(r"(?:([^hms]+)h)?(?:([^hms]+)m)?(?:([^hms]+)s)?|([^hms]+)")
_WEIGHTS = (3600.0, 60.0, 1.0, 1.0)
_TIMES = "90s, 9m or 1h30m"
YEAR = 365 * 24 * 3600.0
"""The longest time that makes sense, in seconds."""


class Folder(click.Path):
    """The path of a folder, or of a file where the flag says so; an empty one is refused, as it
    would be the current folder.
    """

    def __init__(self, kind: type[str | Path]) -> None:
        super().__init__(path_type=kind)

    def convert(
        self,
        value: str | os.PathLike[str],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Any:
        """Refuse a text without a name in it."""
        if not os.fspath(value).strip():
            flag = "the path"
            if param is not None:
                option = isinstance(param, click.Option)
                flag = param.opts[0] if option else param.human_readable_name
            raise UsageError(f"{flag} '{os.fspath(value)}' is empty; give a path")
        return super().convert(value, param, ctx)


class Choice(click.Choice[str]):
    """One of a few words; for a near miss of one of many, the word that was meant is named."""

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        """Name the closest word; all where none is close or there are but two."""
        alike = closest_names(str(value), self.choices)
        if alike and len(self.choices) > 2:
            return f"unknown '{value}'; did you mean '{alike[0]}'?"
        return super().get_invalid_choice_message(value, ctx)


class Names(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.4
    """Names of one kind, several with commas where the flag takes several, as `--impl` does and
    `--scale` does not; the words themselves are checked where they are used.
    """

    def __init__(self, kind: str) -> None:
        self.name = kind

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Refuse a list without a name in it, such as `,`."""
        if not value.strip(", "):
            flag = param.opts[0] if param else self.name
            raise UsageError(f"{flag} '{value}' names no {self.name}; give at least one name")
        return value

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Complete the last name of a comma list."""
        before, comma, last = incomplete.rpartition(",")
        return [
            CompletionItem(before + comma + name)
            for name in known_names(self.name)
            if name.startswith(last)
        ]


def known_names(kind: str) -> list[str]:
    """Return our names of mechanisms, tasks, suites or scales."""
    from lra.core import catalogue, scales

    match kind:
        case "suite" | "scale":
            return scales.names(f"{kind}s")
        case "task":
            return catalogue.names("task")
        case _:
            return catalogue.names("mechanism")


def impl(command: _Command) -> _Command:
    """Add `--impl`."""
    return click.option(
        "--impl",
        "impls",
        type=Names("mechanism"),
        multiple=True,
        metavar="NAME[,NAME...]",
        help="Mechanisms: names, wildcards, 'all', package.module:Class or file.py:Class.",
    )(command)


def require_impl(impls: tuple[str, ...], verb: str, example: str) -> None:
    """Raise `UsageError` where `--impl` was not given."""
    if not impls:
        raise UsageError(
            f"{verb} needs a mechanism; e.g. --impl {example} (see: python -m lra list impls)"
        )


def task(command: _Command) -> _Command:
    """Add `--task`."""
    return click.option(
        "--task",
        "tasks",
        type=Names("task"),
        multiple=True,
        metavar="NAME[,NAME...]",
        help="Tasks: names, wildcards, 'all', package.module:Class or file.py:Class.",
    )(command)


def data(command: _Command) -> _Command:
    """Add `--data`."""
    return click.option(
        "--data",
        "sources",
        multiple=True,
        metavar="TASK=PATH",
        help="Real data of a task: a file, a folder, a prepared set, hub or hub:NAME. Default: its "
        "generator.",
    )(command)


def _store(default: Path, says: str) -> Callable[[_Command], _Command]:
    return click.option("--store", type=Folder(Path), default=default, show_default=True, help=says)


store = _store(DEFAULT_STORE, "Folder of records.")
"""Adds `--store`."""
check_store = _store(CHECK_STORE, "Folder for the records of the check.")
"""Adds `--store` of a check, which shares no folder with runs."""


def suite(default: str) -> Callable[[_Command], _Command]:
    """Return what adds `--suite`."""
    return click.option(
        "--suite",
        type=Names("suite"),
        default=default,
        show_default=True,
        metavar="NAME",
        help="Selection of cells: a name or a TOML file.",
    )


def carried_out(*, timeout: str | None = None) -> Callable[[_Command], _Command]:
    """Return what adds how cells are carried out: `--rerun` to `--json`; `timeout` is a default."""
    options = (
        as_json,
        quiet,
        click.option(
            "--dry-run", is_flag=True, help="Print the cells, about how long they take, and stop."
        ),
        click.option(
            "--timeout",
            metavar="TIME",
            default=timeout,
            show_default=timeout is not None,
            help="Longest time for one cell.",
        ),
        click.option(
            "--budget",
            metavar="TIME",
            help="Stop cleanly after e.g. 90s (or 90), 9m, 1h30m; a rerun continues. Missing cells "
            "run in the order of their value: what was begun; first seeds before second ones; "
            "baselines, then sdpa and identity; the shortest. What cannot be continued starts only "
            "where it fits.",
        ),
        click.option(
            "--rerun",
            type=Choice(["missing", "failed", "disturbed", "all"]),
            default="missing",
            show_default=True,
            help="Which cells to run; a record makes a cell not missing. disturbed: timings taken "
            "while the machine was busy or throttled.",
        ),
    )

    def add(command: _Command) -> _Command:
        for option in options:
            command = option(command)
        return command

    return add


def scale(command: _Command) -> _Command:
    """Add `--scale`."""
    return click.option(
        "--scale",
        type=Names("scale"),
        metavar="NAME",
        help="Protocol of the trainings: a name or a TOML file. Default: the suite's own.",
    )(command)


def data_scale(default: str) -> Callable[[_Command], _Command]:
    """Return what adds `--scale` of a verb that looks at data alone."""
    return click.option(
        "--scale",
        type=Names("scale"),
        default=default,
        show_default=True,
        metavar="NAME",
        help="Protocol: a name or a TOML file.",
    )


def rules(command: _Command) -> _Command:
    """Add `--rules`."""
    return click.option(
        "--rules",
        type=Choice(["fixed", "lra2021"]),
        help="Rules of the tasks; lra2021 repeats the original's choices.",
    )(command)


def settings(also: str = "") -> Callable[[_Command], _Command]:
    """Return what adds `--set`, with the words for what the verb takes beside mechanisms' own."""
    return click.option(
        "--set",
        "settings",
        multiple=True,
        metavar="KEY=VALUE",
        help="A mechanism's setting: features=64, or performer.features=64 for one of several"
        f"{also}.",
    )


def device(command: _Command) -> _Command:
    """Add `--device`."""
    return click.option(
        "--device",
        type=Choice(["cpu", "cuda"]),
        help="Where to compute. Default: cuda if present, else cpu.",
    )(command)


def baselines(command: _Command) -> _Command:
    """Add `--baselines`."""
    return click.option(
        "--baselines",
        type=Folder(Path),
        default=DEFAULT_BASELINES,
        show_default=True,
        help="Folder of baselines, a folder for each class of machine.",
    )(command)


def jobs(command: _Command) -> _Command:
    """Add `--jobs`."""
    return click.option(
        "--jobs",
        type=click.IntRange(min=1),
        metavar="N",
        help="Cells side by side; default: as many as the cores allow, on a GPU one.",
    )(command)


def devices(command: _Command) -> _Command:
    """Add `--devices`."""
    return click.option(
        "--devices",
        type=click.IntRange(min=1),
        default=1,
        show_default=True,
        metavar="N",
        help="Split each training over N GPUs of this machine (on a CPU, N processes): same "
        "batches, same numbers up to rounding.",
    )(command)


def cluster(command: _Command) -> _Command:
    """Add `--cluster`."""
    return click.option(
        "--cluster",
        metavar="WHERE",
        help="Run cells on Dask workers: local:N on this machine, tcp://HOST:PORT of a scheduler, "
        "or a TOML file for Slurm and its like.",
    )(command)


def as_json(command: _Command) -> _Command:
    """Add `--json`."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)


def quiet(command: _Command) -> _Command:
    """Add `--quiet`."""
    return click.option("--quiet", is_flag=True, help="Print only results and what went wrong.")(
        command
    )


def pairs(entries: tuple[str, ...], flag: str) -> dict[str, str]:
    """Split the pairs of `--data` or `--set`.

    Raises `UsageError` for an entry that is no such pair, and for a key given twice.
    """
    found: dict[str, str] = {}
    for entry in entries:
        key, _, value = (part.strip() for part in entry.partition("="))
        if not (key and value):
            form, example = _PAIRS[flag]
            raise UsageError(f"{flag} '{entry}' is not {form}; write e.g. {flag} {example}")
        if key in found:
            raise UsageError(f"{flag} gives '{key}' twice, {found[key]} and {value}; keep one")
        found[key] = value
    return found


def seconds(text: str | None, flag: str) -> float | None:
    """Read a time such as `90`, `90s`, `9m` or `1h30m` in seconds; None stays None. Where its unit
    is missing, says how it is read."""
    if text is None:
        return None
    found = _TIME.fullmatch(text)
    given = [] if found is None else [*zip(found.groups(), _WEIGHTS, strict=True)]
    try:
        parts = [float(number) * weight for number, weight in given if number is not None]
    except ValueError:
        parts = []
    if not parts:
        raise UsageError(f"{flag} '{text}' is not a time; write e.g. {_TIMES}")
    value = sum(parts)
    if not math.isfinite(value):
        raise UsageError(f"{flag} '{text}' is not finite; write e.g. {_TIMES}")
    if value <= 0 or min(parts) < 0:
        raise UsageError(f"{flag} '{text}': give more than nothing, e.g. {_TIMES}")
    if value > YEAR:
        raise UsageError(f"{flag} '{text}' is more than a year; write e.g. {_TIMES}")
    if given[-1][0] is not None:
        number = text.strip()
        echo(
            f"lra: {flag} {number} means {number}s, in seconds; for minutes write {number}m",
            err=True,
        )
    return value
