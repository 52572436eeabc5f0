"""Execution of calls through torch.compile, with empty caches, so that each cell pays for its
compilation.

torch's compiler is imported where it is used: it takes seconds to load, which other cells are
spared.
"""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import ParamSpec, TypeVar, cast

import torch
from torch import Tensor

from lra.core.cells import EfficiencyCell

_P = ParamSpec("_P")
_Out = TypeVar("_Out")

_CACHES = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")


def as_executed(cell: EfficiencyCell, function: Callable[_P, _Out]) -> Callable[_P, _Out]:
    """Return the function for the cell's execution: itself, or compiled at its first call."""
    if cell.execution == "eager":
        return function
    return cast(Callable[_P, _Out], torch.compile(function))


def forced_eager(execution: str) -> AbstractContextManager[None]:
    """Run even compiled functions operation by operation, so that these can be counted."""
    if execution == "eager":
        return nullcontext()
    stance: AbstractContextManager[None] = torch.compiler.set_stance("force_eager")
    return stance


def empty_caches(cell: EfficiencyCell) -> AbstractContextManager[None]:
    """Keep compiled code in an empty folder that is removed after the measurement.

    Otherwise only the first cell would pay for the compilation. The compiler has been loaded and
    has compiled something else by then.
    """
    return nullcontext() if cell.execution == "eager" else _empty_caches(cell.device)


@contextmanager
def _empty_caches(device: str) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in _CACHES}
    with tempfile.TemporaryDirectory(prefix="lra-compiled-", ignore_cleanup_errors=True) as folder:
        os.environ.update(dict.fromkeys(_CACHES, folder))
        try:
            torch.compile(_increment)(torch.ones(1, device=device))
            _counters().clear()
            yield
        finally:
            for name, value in before.items():
                os.environ.pop(name) if value is None else os.environ.update({name: value})


def describe_execution(cell: EfficiencyCell) -> str:
    """Describe the execution of a call that has run, and its number of graphs."""
    if cell.execution == "eager":
        return "eager"
    pieces = _counters()["stats"]["unique_graphs"]
    return f"torch.compile, {pieces} graph{'s' * (pieces != 1)}"


def _increment(x: Tensor) -> Tensor:
    return x + 1


def _counters() -> dict[str, Counter[str]]:
    from torch._dynamo.utils import counters

    return counters
