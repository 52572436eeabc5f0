"""Words of a report: numbers with the digits that they can bear, units, statuses."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any, Literal, TypeVar

import msgspec

from lra.core.errors import OURS
from lra.core.escape import escape_controls
from lra.core.protocol import Machine
from lra.core.records import Failure, Status

STATUS: dict[Status, str] = {
    "ok": "ok",
    "oom": "OOM",
    "timeout": "timeout",
    "crash": "crash",
    "diverged": "diverged",
    "error": "error",
    "unsupported": "unsupported",
    "skipped": "skipped",
}
_WHY = {
    "Pruned": "a shorter length failed",
    "NotInstalled": "not installed",
    "NoResult": "no result",
}
"""Failure types of our own, beside names of exceptions and signals."""
NOT_RUN = "not run"
NO_VALUE = "n/a"
DAGGER = "\N{DAGGER}"
"""Mark of a score that is not surely better than the best shortcut."""
TIMES = "\N{MULTIPLICATION SIGN}"

_SEEMS_OTHER = re.compile(r"none|yes|no|[-+]?[0-9.]+(e[-+]?[0-9]+)?|\(.*\)|'.*'|", re.IGNORECASE)
"""Texts that look like a value of another type, or quoted, and are set in quotes."""
_Value = TypeVar("_Value", int, str)

Unit = Literal["s", "B", "J"]
_SCALES: dict[Unit, tuple[tuple[float, str], ...]] = {
    "s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")),
    "B": ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")),
    "J": ((1.0, "J"), (1e-3, "mJ"), (1e-6, "µJ")),
}


def figures(value: float, spread: float | None = None, most: int = 3) -> str:
    """Return `value` with two to `most` significant figures, as many as its spread supports.

    Beyond the second, no digit stands below the leading place of `spread` (in `value`'s unit).
    """
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    leading = math.floor(math.log10(abs(value)))
    place = leading - (most - 1)
    if spread is not None and spread > 0:
        place = max(place, min(leading - 1, math.floor(math.log10(spread))))
    return f"{round(value, -place):.{max(0, -place)}f}"


def percent(share: float, spread: float | None = None) -> str:
    """Return a share of 1 in percent without the sign, one decimal unless the spread has ten."""
    decimals = 0 if spread is not None and spread >= 0.1 else 1
    # z: nothing is -0.0.
    return f"{100 * share:z.{decimals}f}"


def scale_of(values: Sequence[float], unit: Unit) -> tuple[float, str]:
    """Return (size, symbol) of the unit in which a table of `values` reads best: ms, MB, ...

    Sizes are decimal: 1 MB is a million bytes.
    """
    steps = _SCALES[unit]
    middle = median(values) if values else 0.0
    return next((step for step in steps if middle >= step[0]), steps[-1])


def quantity(value: float, unit: Unit, most: int = 3) -> str:
    """Return a time, a size or an energy in the unit that suits it."""
    size, symbol = scale_of([value], unit)
    return f"{figures(value / size, most=most)} {symbol}"


def between(low: float, high: float) -> str:
    """Return the ends of an interval with as many digits as its width supports: `1.2 to 1.4`."""
    return " to ".join(figures(bound, high - low) for bound in (low, high))


def span(values: Iterable[_Value]) -> str:
    """Return the least and the greatest: `5 to 500`; `3` for a single value, empty for none."""
    known = list(values)
    if not known:
        return ""
    low, high = min(known), max(known)
    return f"{low}" if low == high else f"{low} to {high}"


def duration(seconds: float) -> str:
    """Return a time to wait: `40 s`, `3 min`, `2 h 10 min`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 90:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60} min"


def about(seconds: float) -> str:
    """Return an expected time: `about 40 s`, `under a second`."""
    return "under a second" if seconds < 1 else f"about {duration(seconds)}"


def count(number: int, singular: str, plural: str | None = None) -> str:
    """Return `3 cells`, `1 cell`."""
    return f"{number} {singular if number == 1 else plural or singular + 's'}"


def apart(settings: Sequence[Sequence[str]]) -> list[str]:
    """Return for each of several settings the parts that not all share, numbered where some are
    still alike: `batch 4, bfloat16`. Empty for a single one."""
    names = [
        ", ".join(part for part in own if not all(part in other for other in settings))
        for own in settings
    ]
    alike = [names[:n].count(name) + 1 for n, name in enumerate(names)]
    return [
        name if names.count(name) == 1 else f"{name} ({n})" if name else f"{n}"
        for name, n in zip(names, alike, strict=True)
    ]


def listing(parts: Sequence[str]) -> str:
    """Return `a`, `a and b`, `a, b and c`."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def listing_of(parts: Sequence[str], most: int) -> str:
    """Return the first `most` parts, and the number of the others: `a, b and 3 more`."""
    left = len(parts) - most
    return listing([*parts[:most], *([f"{left} more"] if left > 0 else [])])


def shortened(texts: Sequence[str], most: int) -> list[str]:
    """Return each text in at most `most` characters, without its middle; no two become alike.

    Where no such cut tells them apart they are numbered. That needs a `most` of 8 and fewer than
    1000 texts: below, two may become alike or one too long.
    """
    for head in sorted(range(most), key=lambda head: abs(head - most // 3)):
        cuts = [_cut(text, most, head) for text in texts]
        if len(set(cuts)) == len(set(texts)):
            return cuts
    shorter = [f"{_cut(text, most - 5, most // 3)} #{n}" for n, text in enumerate(texts, start=1)]
    return [
        text if len(text) <= most else other for text, other in zip(texts, shorter, strict=True)
    ]


def _cut(text: str, most: int, head: int) -> str:
    """The first `head` characters and the last, an ellipsis between them."""
    if len(text) <= most:
        return text
    return f"{text[:head]}\N{HORIZONTAL ELLIPSIS}{text[len(text) - (most - head - 1) :]}"


def ending(status: Status, failure: Failure | None) -> str:
    """Return the cell of a table for an ending: `OOM`, `crash (SIGSEGV)`; our own errors are just
    `error`."""
    if failure is not None and failure.type in _WHY:
        return f"{STATUS[status]}: {_WHY[failure.type]}"
    if failure is not None and status in ("crash", "error") and failure.type not in OURS:
        return f"{STATUS[status]} ({escape_controls(failure.type)})"
    return STATUS[status]


def machine_words(machine: Machine) -> str:
    """Return a machine class for people."""
    driver = [f"driver {machine.driver}"] if machine.driver else []
    return ", ".join([escape_controls(machine.processor), count(machine.cores, "core"), *driver])


def flat(value: Any) -> dict[str, str]:
    """Return a frozen value's fields in order as text, nested fields as `outer.inner`."""
    return {key: plain(part) for key, part in leaves(value).items()}


def leaves(value: Any) -> dict[str, Any]:
    """Return a frozen value's fields in order, nested fields as `outer.inner`; empty texts apart,
    what is empty is None."""
    found: dict[str, Any] = {}

    def walk(prefix: str, part: Any) -> None:
        if isinstance(part, Mapping) and (part or not prefix):
            for key in part:
                walk(f"{prefix}.{key}" if prefix else str(key), part[key])
        else:
            found[prefix] = None if part in ((), [], {}) else part

    walk("", msgspec.to_builtins(value, order="deterministic"))
    return found


def plain(value: Any) -> str:
    """Return a setting as text: `none`, `yes`, `0.002`, `(0.9, 0.98)`."""
    if value is None or value in ((), [], {}):
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        return f"({', '.join(map(_one_of_several, value))})"
    if isinstance(value, str) and _SEEMS_OTHER.fullmatch(value):
        return f"'{value}'"
    return escape_controls(str(value))


def _one_of_several(value: Any) -> str:
    """A value as text; in quotes where it would read like several."""
    is_one = not isinstance(value, str) or "," not in value
    return plain(value) if is_one else f"'{escape_controls(value)}'"


def differing(settings: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return, for each of several settings, `key=value` of the keys in which their values differ.

    A nested key is named by its last part, or by all of it where another that differs ends alike.
    Empty strings where none differ. A missing key counts as none: records of an earlier version
    lack the settings that a later one added.
    """
    keys = sorted({key for one in settings for key in one})
    varying = [key for key in keys if not _are_alike([one.get(key) for one in settings])]
    ends = Counter(key.rpartition(".")[2] for key in varying)
    names = {key: key if ends[end := key.rpartition(".")[2]] > 1 else end for key in varying}
    return [
        ", ".join(f"{name}={plain(one[key])}" for key, name in names.items() if key in one)
        for one in settings
    ]


def _are_alike(values: Sequence[Any]) -> bool:
    """Whether all values are equal and of the same type: `True` is not 1."""
    first = values[0]
    return all(type(one) is type(first) and one == first for one in values)
