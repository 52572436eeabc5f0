"""Counted operations of a call: those of matrix products, convolutions and fused attention.

An addition and a multiplication are two operations. Work element by element (softmax, sums, masks)
is left out, as in the peak rates that machines are sold by; so are Fourier transforms and recurrent
kernels of libraries, which hold no product that torch can see.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry, shape_wrapper

from attention_impls.contract import Layer
from lra.core.cells import EfficiencyCell
from lra.core.errors import UnsupportedError
from lra.core.records import Metric

_Shape = Sequence[int]


def count_operations(
    call: Callable[[], object], *, between: Callable[[], object] = lambda: None
) -> int:
    """Return the number of operations of one call; `between` runs before it, uncounted."""
    between()
    with _Counter() as counter:
        call()
    total: int = counter.total
    return total


def declared_operations(cell: EfficiencyCell, module: nn.Module) -> Metric:
    """Return the operations that a layer declares for a cell's call, by formula: nothing runs."""
    value, why = None, ""
    if cell.level != "layer":
        why = f"declared of a layer, and this is level {cell.level}"
    elif cell.mode != "forward":
        why = f"declared of a forward pass, and this is mode {cell.mode}"
    elif cell.dtype != "float32":
        why = f"declared for float32, and this is {cell.dtype}"
    elif isinstance(module, Layer):
        try:
            each = module.operations(cell.length, causal=cell.direction == "causal")
            value = float(cell.batch * each)
        except UnsupportedError as error:
            why = str(error)
    return Metric(value=value, unit="count", better="lower", why_null=why or None)


class _Counter(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Adds up torch's formulas as operations go by.

    torch's own counter also tracks modules, which fails for parameters that a module returns.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.total: int = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        formula = _FORMULAS.get(func._overloadpacket)
        if formula is None:
            # Made of other operators, as a linear map outside of autograd is.
            with self:
                made = func.decompose(*args, **kwargs)
            if made is not NotImplemented:
                return made
        out = func(*args, **kwargs)
        if formula is not None:
            self.total += int(formula(*args, **kwargs, out_val=out))
        return out


def _fused(q: _Shape, _: _Shape, v: _Shape, *__: Any, **___: Any) -> int:
    """Two products; keys may have fewer heads than queries, which share them."""
    *pairs, width = q
    return 2 * math.prod(pairs) * v[-2] * (width + v[-1])


def _fused_backward(_: _Shape, q: _Shape, __: _Shape, v: _Shape, *___: Any, **____: Any) -> int:
    """Weights once more, then gradients of v, of the weights, of q and of k."""
    *pairs, width = q
    return 2 * math.prod(pairs) * v[-2] * (3 * width + 2 * v[-1])


def _product(a: _Shape, b: _Shape, *_: Any, **__: Any) -> int:
    """2 N K M for each pair of matrices; a and b are (..., N, K) and (..., K, M)."""
    return 2 * math.prod(a) * b[-1]


def _added_product(_: _Shape, a: _Shape, b: _Shape, *__: Any, **___: Any) -> int:
    return _product(a, b)


_ATEN = torch.ops.aten
_OWN: dict[Any, Any] = {
    _ATEN.mm: _product,
    _ATEN.bmm: _product,
    _ATEN.addmm: _added_product,
    _ATEN.addmm_: _added_product,
    _ATEN.baddbmm: _added_product,
    _ATEN.baddbmm_: _added_product,
    _ATEN._scaled_dot_product_flash_attention: _fused,
    _ATEN._scaled_dot_product_flash_attention_backward: _fused_backward,
    _ATEN._scaled_dot_product_efficient_attention: _fused,
    _ATEN._scaled_dot_product_efficient_attention_backward: _fused_backward,
    _ATEN._scaled_dot_product_cudnn_attention: _fused,
    _ATEN._scaled_dot_product_cudnn_attention_backward: _fused_backward,
    _ATEN._scaled_dot_product_flash_attention_for_cpu: _fused,
    _ATEN._scaled_dot_product_flash_attention_for_cpu_backward: _fused_backward,
}
"""Formulas where torch's own pass over an operator or, by version, refuse some of its calls: fused
attention on a CPU or with fewer heads of keys, products in place or with a dtype of their own."""
_FORMULAS = flop_registry | {
    packet: shape_wrapper(formula)  # type: ignore[no-untyped-call]
    for packet, formula in _OWN.items()
}
