"""Growth of what a layer keeps, from call to call of the same request."""

from __future__ import annotations

import gc
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from itertools import pairwise
from typing import Any

from torch import nn

from lra.verify.live_bytes import LiveBytes

READ_AFTER = (2, 7, 12)
"""Numbers of calls after which is looked: what is made once, at the first call or at a later one,
adds to one reading alone."""
STILL_AFTER = (150, 160)
"""Numbers of calls between which it has to go on growing: a table may have room for a few."""
DEEP = 5
"""Number of containers inside of one another that are looked into."""
_CACHED = type(lru_cache(lambda: None))
CONTAINERS = (Mapping, list, tuple, set, deque)


def kept_by_calls(layer: nn.Module, call: Callable[[], object]) -> str:
    """Return what grows from each reading to the next, in words; empty where nothing does.

    `call` is to ask the same each time, in tensors of its own: what is kept of the last call alone
    is then as large at each reading.
    """
    with _old_objects_aside(), LiveBytes() as live:
        read = [_read(layer, live, call, times) for times in _steps((0, *READ_AFTER))]
        growing = [name for name in read[0] if _grows(name, read)]
        if growing:
            later = _steps((READ_AFTER[-1], *STILL_AFTER))
            read += [_read(layer, live, call, times) for times in later]
    for name in growing:
        if _grows(name, read[-2:]):
            more = read[len(READ_AFTER) - 1][name] - read[0][name]
            return f"{more} more {name} after {READ_AFTER[-1]} calls than after {READ_AFTER[0]}"
    return ""


def _steps(numbers: tuple[int, ...]) -> list[int]:
    return [last - first for first, last in pairwise(numbers)]


def _read(
    layer: nn.Module, live: LiveBytes, call: Callable[[], object], times: int
) -> dict[str, int]:
    """Call a number of times, then look."""
    for _ in range(times):
        call()
    gc.collect()
    return {"bytes of tensors": live.live, "entries of lists and tables": _entries(layer)}


def _grows(name: str, read: list[dict[str, int]]) -> bool:
    return all(before[name] < after[name] for before, after in pairwise(read))


@contextmanager
def _old_objects_aside() -> Iterator[None]:
    """Keep what is there already out of the collector's sight: it is asked often."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _entries(layer: nn.Module) -> int:
    """Return the number of entries in the lists and tables of a layer, of its classes and of the
    files that define them, with those of their functions' caches."""
    kinds = {kind for part in layer.modules() for kind in type(part).__mro__}
    own = [kind for kind in kinds if kind.__module__.partition(".")[0] not in ("torch", "builtins")]
    files = [sys.modules[name] for name in {kind.__module__ for kind in own} & sys.modules.keys()]
    seen: dict[int, Any] = {}
    return sum(_count(vars(one), DEEP, seen) for one in (*layer.modules(), *own, *files))


def _count(found: Any, deep: int, seen: dict[int, Any]) -> int:
    if isinstance(found, _CACHED):
        return int(found.cache_info().currsize)
    if not isinstance(found, CONTAINERS) or id(found) in seen or not deep:
        return 0
    # Kept, as another would get its number: a class's table is made anew whenever it is asked for.
    seen[id(found)] = found
    inside = found.values() if isinstance(found, Mapping) else found
    return len(found) + sum(_count(one, deep - 1, seen) for one in inside)
