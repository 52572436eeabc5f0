"""What torch.compile makes of a call, with caches of its own: compiling is paid for here.

torch's compiler is imported where it is used: it takes seconds to load, which no other cell should.
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
    """Return the function as the cell's execution has it: itself, or compiled when first called."""
    if cell.execution == "eager":
        return function
    return cast(Callable[_P, _Out], torch.compile(function))


def forced_eager(execution: str) -> AbstractContextManager[None]:
    """Have even what is compiled run operation by operation, for whoever counts these."""
    if execution == "eager":
        return nullcontext()
    stance: AbstractContextManager[None] = torch.compiler.set_stance("force_eager")
    return stance


def empty_caches(cell: EfficiencyCell) -> AbstractContextManager[None]:
    """Keep what is compiled in an empty folder that goes when all is measured.

    Otherwise the time to compile would be that of whoever came first. The compiler has been loaded
    and has compiled something else by then.
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
    """Say how a call was carried out, after it has been, and in how many pieces."""
    if cell.execution == "eager":
        return "eager"
    pieces = _counters()["stats"]["unique_graphs"]
    return f"torch.compile, {pieces} graph{'s' * (pieces != 1)}"


def _increment(x: Tensor) -> Tensor:
    return x + 1


def _counters() -> dict[str, Counter[str]]:
    from torch._dynamo.utils import counters

    return counters
