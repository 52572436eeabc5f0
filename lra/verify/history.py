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

from lra.verify.laws.memory_growth import LiveBytes

READ_AFTER = (2, 7, 12, 17)
"""Numbers of calls after which is looked: what is made once, at the first call or at a later one,
adds to one reading alone."""
DEEP = 5
"""Number of containers inside of one another that are looked into."""
_CACHED = type(lru_cache(lambda: None))
CONTAINERS = (Mapping, list, tuple, set, deque)


def kept_by_calls(layer: nn.Module, call: Callable[[], object]) -> str:
    """Return what grows from each reading to the next, in words; empty where nothing does.

    `call` is to ask the same each time, in tensors of its own: what is kept of the last call alone
    is then as large at each reading.
    """
    found: dict[str, list[int]] = {"bytes of tensors": [], "entries of lists and tables": []}
    with _old_objects_aside(), LiveBytes() as live:
        for turn in range(READ_AFTER[-1]):
            call()
            if turn + 1 in READ_AFTER:
                gc.collect()
                for read, figure in zip(found.values(), (live.live, _entries(layer)), strict=True):
                    read.append(figure)
    for name, read in found.items():
        if all(before < after for before, after in pairwise(read)):
            first, *_, last = read
            return f"{last - first} more {name} after {READ_AFTER[-1]} calls than after {READ_AFTER[0]}"
    return ""


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
    seen: set[int] = set()
    return sum(_count(vars(one), DEEP, seen) for one in (*layer.modules(), *own, *files))


def _count(found: Any, deep: int, seen: set[int]) -> int:
    if isinstance(found, _CACHED):
        return int(found.cache_info().currsize)
    if not isinstance(found, CONTAINERS) or id(found) in seen or not deep:
        return 0
    seen.add(id(found))
    inside = found.values() if isinstance(found, Mapping) else found
    return len(found) + sum(_count(one, deep - 1, seen) for one in inside)
