"""On a GPU nobody waits for what a tensor holds: shapes and branches follow from sizes alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from attention_impls.contract import Context, Layer
from attention_impls.learned import synthesizer

BATCH, N = 2, 37
SEEDED = {"chunked"}
"""They seed the draws of both passes from the host, which a graph cannot do anew."""


@pytest.fixture
def without_values(build, directions, monkeypatch) -> Callable[..., tuple[Layer, list[Any]]]:
    """Return a layer whose draws are made, on the device without values, and what it may be asked:
    in which direction, and with padding or none. That raises where it asks for a value."""

    def make(case: Any, **sizes: Any) -> tuple[Layer, list[Any]]:
        monkeypatch.setattr(synthesizer, "FEW", 1)  # examples that a GPU computes one by one
        layer = build(case, **sizes)
        for causal in directions(layer):
            layer(torch.randn(2, N, 12, dtype=torch.float64), Context(causal))
        # Which that device has not; everything here is of one dtype.
        monkeypatch.setattr(torch, "autocast", lambda *_, **__: nullcontext())
        mask = torch.empty(BATCH, N, dtype=torch.bool, device="meta")
        masks = [None, *[mask] * (layer.card.capabilities.padding != "none")]
        return layer.to("meta"), [(causal, one) for one in masks for causal in directions(layer)]

    return make


@contextmanager
def told(name: str, mask: Tensor | None) -> Iterator[None]:
    try:
        yield
    except (NotImplementedError, RuntimeError) as error:
        form = "bare" if mask is None else "padded"
        raise AssertionError(
            f"{name} ({form}) asks for what a tensor holds, or sends it, or draws on the host: let "
            f"shapes and branches follow from sizes alone\n{error}"
        ) from error


@pytest.mark.usefixtures("small_tiles")
@torch.no_grad()
def test_no_value_is_asked_for(any_case, without_values) -> None:
    layer, requests = without_values(any_case)
    x = torch.empty(BATCH, N, 12, dtype=torch.float64, device="meta")
    for causal, mask in requests:
        with told(any_case[0], mask):
            call(layer, x, mask, causal)
            with NothingSent(), NothingCrosses():  # but once: what is sent each time is waited for
                call(layer, x, mask, causal)


@pytest.mark.usefixtures("small_tiles")
def test_training_can_be_recorded(any_case, without_values, directions) -> None:
    """Forward and back, from the second call of a shape on, padded where that is claimed; with
    dropout, whose draws a graph makes anew only where the device makes them."""
    dropout = 0.0 if any_case[0] in SEEDED else 0.1
    layer, requests = without_values(any_case, dropout=dropout)
    layer.train()
    x = torch.empty(BATCH, N, 12, dtype=torch.float64, device="meta", requires_grad=True)
    for causal, mask in requests[-len(directions(layer)) :]:
        with told(any_case[0], mask):
            trained(layer, x, mask, causal)
            with NothingSent(), NothingCrosses():
                trained(layer, x, mask, causal)


_SENDING = (
    torch.tensor,
    torch.as_tensor,
    torch.asarray,
    torch.Tensor.to,
    torch.Tensor.new_tensor,
)


class NothingSent(TorchFunctionMode):
    """Raises where a value of the host becomes a tensor of the device by the calls named here."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        out = func(*args, **(kwargs or {}))
        if func in _SENDING and out.is_meta:
            value = args[1] if func is torch.Tensor.new_tensor else args[0]
            if not (isinstance(value, Tensor) and value.is_meta):
                raise RuntimeError(f"{value!r:.80} is sent to the device")
        return out


class NothingCrosses(TorchDispatchMode):
    """Raises where an operator meets another device, or copies to it, or where the host draws."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        out = func(*args, **(kwargs or {}))
        tensors = [x for x in tree_leaves((args, kwargs, out)) if isinstance(x, Tensor)]
        if len({x.device for x in tensors if x.dim() or x.is_meta}) > 1:
            raise RuntimeError(f"{func} crosses between devices")
        if torch.Tag.nondeterministic_seeded in func.tags and any(x.is_cpu for x in tensors):
            raise RuntimeError(f"{func} draws on the host")
        return out


def call(layer: Layer, x: Tensor, mask: Tensor | None, causal: bool) -> None:
    assert layer(x, Context(causal, mask)).y_BND.shape == x.shape
    if layer.card.capabilities.decode == "none" or not causal:
        return
    state = layer.init_state(BATCH, length=x.shape[1], device=x.device, dtype=x.dtype)
    step = Context(True, None if mask is None else mask[:, :1])
    for _ in range(2):
        y, state = layer(x[:, :1], step, state=state)
        assert y.shape == (BATCH, 1, 12)


def trained(layer: Layer, x: Tensor, mask: Tensor | None, causal: bool) -> None:
    parameters = [parameter for parameter in layer.parameters() if parameter.requires_grad]
    y = layer(x, Context(causal, mask)).y_BND
    torch.autograd.grad(y.sum(), [x, *parameters], allow_unused=True)


@pytest.mark.parametrize(
    "send",
    [
        lambda x: torch.tensor([1.0], device=x.device),
        lambda x: torch.as_tensor([1.0], device=x.device),
        lambda x: torch.asarray([1.0], device=x.device),
        lambda x: torch.ones(1).to(x.device),
        lambda x: x.new_tensor([1.0]),
    ],
)
def test_what_is_sent_is_seen(send: Callable[[Tensor], Tensor]) -> None:
    with NothingSent(), pytest.raises(RuntimeError, match="is sent to the device"):
        send(torch.ones(1, device="meta"))


@pytest.mark.parametrize(
    "cross",
    [
        lambda x: int(torch.randint(9, ())),
        lambda x: torch.empty_like(x).copy_(torch.ones(3)),
        lambda x: x.cpu(),
        lambda x: torch.ones(3).to(x.device),
        lambda x: torch.rand(3),
    ],
)
def test_what_crosses_is_seen(cross: Callable[[Tensor], object]) -> None:
    with NothingCrosses(), pytest.raises((RuntimeError, NotImplementedError)):
        cross(torch.ones(3, device="meta"))
