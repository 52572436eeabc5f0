"""Calls of a mechanism's layer: its numbers, its decoding, and the operators that it costs.

B batch, N length, D width
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, cast
from unittest import mock

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from attention_impls.contract import Attention, Context, Dims, Layer, MechanismConfig, Position
from lra.core import catalogue, loading
from lra.core.errors import LraError

WIDTH, HEADS, LONGEST = 16, 2, 2048
SHORT, LONG = (1, 7, 64), 1500
"""Lengths besides those at the borders of a mechanism; the long one only for its defaults."""
TRACED = 700
SMALL = {"TILE": 2**8, "TILE_COST": 0, "DENSE_ADVANTAGE": 0, "CHUNK": 4, "LONG": 0}
"""Thresholds in mechanisms from which on a computation takes another path, with values at which a
short input takes the path of a long one."""
LOOKED_AT = 24
"""Number of positions that an oracle is asked for."""


def numbers(name: str) -> Iterator[object]:
    """Yield outputs and gradients: on all paths of the computation, with padding, to another
    sequence, with positions, in training with dropout, in bfloat16, after redraws and a load."""
    for config in _configs(name):
        layer = _layer(name, config)
        yield list(layer.state_dict().values())
        for causal in _directions(layer):
            for n in _lengths(layer, (*SHORT, LONG) if config == layer.Config() else SHORT):
                yield _call(layer, n, causal)
            yield _call(layer, 64, causal, padded=False)
            yield from _with_positions(layer, causal)
            with torch.autocast("cpu", torch.bfloat16):
                yield _call(layer, 64, causal)
            yield _call(_layer(name, config, dropout=0.2).train(), 64, causal)
        with _on_long_path():
            for causal in _directions(layer):
                yield _call(layer, 150, causal)
                yield _call(_layer(name, config, dropout=0.2).train(), 150, causal, padded=False)
        if layer.card.capabilities.cross:
            yield _call(layer, 64, False, source=40)
        for step in range(1, 1100, 100):
            layer.after_step(step)
        layer.load_state_dict(layer.state_dict())
        yield _call(layer, 64, _directions(layer)[0])


def oracle(name: str) -> Iterator[object]:
    """Yield the oracle's outputs and weights, from which trained attention is computed."""
    for config in _configs(name):
        layer = _layer(name, config)
        for causal in _directions(layer):
            mask_BN = torch.arange(LOOKED_AT) < torch.tensor([[LOOKED_AT], [LOOKED_AT // 2]])
            context = Context(causal=causal, query_mask_BN=mask_BN, key_mask_BM=mask_BN)
            with torch.no_grad():
                heads = cast(Attention, layer).project(_input(LOOKED_AT), context, None, None)
                yield cast(Attention, layer).oracle(
                    heads.q_BHNK, heads.k_BGMK, heads.v_BGMV, context, **heads.extra
                )


def decoding(name: str) -> Iterator[object]:
    """Yield outputs and states of decoding: taken in at once, in pieces and position by
    position."""
    for config in _configs(name):
        for pieces in ((40, 1, 1, 38), (1,) * 20, (70, 3, 7)):
            yield from _decoded(name, config, pieces)


def padded_decoding(name: str) -> Iterator[object]:
    """Yield the same of two rows in pieces, where the second row ends within a piece."""
    real_BN = torch.arange(80) < torch.tensor([[80], [50]])
    for config in _configs(name):
        yield from _decoded(name, config, (40, 30, 10), real_BN)


def trace(name: str) -> Iterator[object]:
    """Yield the operators that calls make, with shapes and types, and the declared operations."""
    for config in _configs(name):
        layer = _layer(name, config)
        for causal in _directions(layer):
            past = {border + 1 for border in layer.borders if border < LONGEST}
            for n in sorted({64, TRACED, *past} if config == layer.Config() else {64}):
                for training in (False, True) if n not in past else (False,):
                    layer.train(training)
                    with Trace() as seen, torch.set_grad_enabled(training):
                        _call(layer, n, causal, backward=training, padded=False)
                    yield seen.operators
                yield _declared(layer, n, causal)
            with Trace() as seen, torch.no_grad():
                _call(layer.eval(), 64, causal, backward=False)
            yield seen.operators
        if decodes(name):
            x_BND = _input(64)
            with Trace() as seen, torch.no_grad():
                state = layer.init_state(2, length=64, device=x_BND.device, dtype=x_BND.dtype)
                for part_BND in torch.split(x_BND, [61, 1, 1, 1], dim=1):
                    state = layer(part_BND, Context(causal=True), state=state).state
            yield seen.operators


def portable(name: str) -> Iterator[object]:
    """Yield operators, outputs and gradients of the path that compilers and mostly GPUs take."""
    with mock.patch.object(torch.compiler, "is_compiling", lambda: True):
        for config in _configs(name):
            layer = _layer(name, config)
            for causal in _directions(layer):
                for n in _lengths(layer, (7, 64)):
                    with Trace() as seen:
                        yield _call(layer, n, causal)
                    yield seen.operators
                yield from _with_positions(layer, causal)
                yield _call(_layer(name, config, dropout=0.2).train(), 64, causal)
                with _on_long_path():
                    yield _call(layer, 150, causal)
                    yield from _with_positions(layer, causal, 150)


def has_attention_weights(name: str) -> bool:
    """Return whether records of trainings have a mechanism's trained attention."""
    return _class(name).card.weights == "convex"


def decodes(name: str) -> bool:
    """Return whether a mechanism keeps a state."""
    return _class(name).card.capabilities.decode != "none"


def pads(name: str) -> bool:
    """Return whether a mechanism takes padding."""
    return _class(name).card.capabilities.padding != "none"


class Trace(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Records each operator, with shapes and types of its tensors, while it is `recording`."""

    def __init__(self, *, recording: bool = True) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.recording = recording
        self.operators: list[object] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if not self.recording:
            return out
        like = [(str(t.dtype), tuple(t.shape)) for t in (*args, out) if isinstance(t, Tensor)]
        self.operators.append((str(func), like))
        return out


@contextmanager
def _on_long_path() -> Iterator[None]:
    """Make short inputs take the path of long ones."""
    with ExitStack() as stack:
        for module in [m for name, m in sys.modules.items() if name.startswith("attention_impls.")]:
            for constant in SMALL.keys() & vars(module).keys():
                stack.enter_context(mock.patch.object(module, constant, SMALL[constant]))
        yield


def _class(name: str) -> type[Layer]:
    return cast(type[Layer], loading.load(catalogue.find("mechanism", name)))


def _configs(name: str) -> list[MechanismConfig]:
    found = _class(name)
    return [found.Config(), *found.trials]


def _layer(name: str, config: MechanismConfig, dropout: float = 0.0) -> Layer:
    torch.manual_seed(0)
    kind = _class(name)
    dims = Dims(width=WIDTH, qkv_width=WIDTH, heads=HEADS, max_length=LONGEST, dropout=dropout)
    return kind(dims, config, shared=kind.build_shared(dims, config), seed=3).eval()


def _directions(layer: Layer) -> list[bool]:
    can = layer.card.capabilities
    return [False] * can.bidirectional + [True] * (can.causal != "no")


def _lengths(layer: Layer, plain: tuple[int, ...]) -> list[int]:
    beside = (border + step for border in layer.borders for step in (-1, 0, 1))
    return sorted({*plain, *(n for n in beside if 0 < n <= LONGEST)})


def _input(n: int) -> Tensor:
    return torch.randn(2, n, WIDTH, generator=torch.Generator().manual_seed(n))


def _call(
    layer: Layer,
    n: int,
    causal: bool,
    *,
    source: int | None = None,
    padded: bool = True,
    backward: bool = True,
    position: Position | None = None,
) -> list[Tensor]:
    """Return output and gradients, with the second row's last third padded where padding is
    claimed."""
    torch.manual_seed(n)
    x_BND = _input(n).requires_grad_(backward)
    mask_BN = None
    if padded and n > 2 and layer.card.capabilities.padding != "none" and source is None:
        mask_BN = torch.arange(n) < torch.tensor([[n], [2 * n // 3]])
    context = Context(
        causal=causal, query_mask_BN=mask_BN, key_mask_BM=mask_BN, position=position
    )  # fmt: skip
    other_BMD = None if source is None else _input(source)
    y_BND = layer(x_BND, context, source_BMD=other_BMD).y_BND
    if not backward:
        return [y_BND]
    parameters = [p for p in layer.parameters() if p.requires_grad]
    grads = torch.autograd.grad(
        y_BND.float().square().sum(), [x_BND, *parameters], allow_unused=True
    )
    return [y_BND, *(g for g in grads if g is not None)]


def _decoded(
    name: str, config: MechanismConfig, pieces: tuple[int, ...], real_BN: Tensor | None = None
) -> Iterator[object]:
    layer, x_BND = _layer(name, config), _input(80)
    with torch.no_grad():
        state = layer.init_state(2, length=80, device=x_BND.device, dtype=x_BND.dtype)
        for at in torch.split(torch.arange(sum(pieces)), list(pieces)):
            mask_BN = None if real_BN is None else real_BN[:, at]
            context = Context(causal=True, query_mask_BN=mask_BN, key_mask_BM=mask_BN)
            y_BND, state = layer(x_BND[:, at], context, state=state)[:2]
            yield y_BND
        yield state


def _with_positions(layer: Layer, causal: bool, n: int = 64) -> Iterator[object]:
    can = layer.card.capabilities
    for name in ["alibi"] * can.bias + ["rope"] * can.rotary:
        kind = cast(type[Position], loading.load(catalogue.find("position", name)))
        yield _call(layer, n, causal, position=kind(layer.dims))


def _declared(layer: Layer, n: int, causal: bool) -> object:
    try:
        return layer.operations(n, causal=causal)
    except LraError:
        return None
