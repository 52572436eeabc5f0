"""On a GPU nobody waits for what a tensor holds: shapes and branches follow from sizes alone."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from attention_impls.contract import Context, Layer

WAITS = {("bigbird", "padded"), ("synthesizer", "padded")}
"""They ask once. BigBird draws its graph by how many blocks an example has. Synthesizer, without
weights for each example, which would be many times as large, asks how far apart logits are that
examples share. Their other forms ask nothing."""


@pytest.mark.usefixtures("small_tiles")
@torch.no_grad()
def test_no_value_is_asked_for(any_case, build, directions, monkeypatch) -> None:
    """Tensors of the device without values raise when asked for one; it is no CPU either."""
    name, _ = any_case
    layer, n = build(any_case), 37
    for causal in directions(layer):  # draws that are made once
        layer(torch.randn(2, n, 12, dtype=torch.float64), Context(causal))
    # Which that device has not; everything here is of one dtype.
    monkeypatch.setattr(torch, "autocast", lambda *_, **__: nullcontext())
    layer = layer.to("meta")
    x = torch.empty(2, n, 12, dtype=torch.float64, device="meta")
    takes_masks = layer.card.capabilities.padding != "none" and (name, "padded") not in WAITS
    masks = [None, *[torch.empty(2, n, dtype=torch.bool, device="meta")] * takes_masks]
    for mask in masks:
        try:
            call(layer, x, mask, directions(layer))
            with NothingSent():  # but once: what is sent at each call is waited for
                call(layer, x, mask, directions(layer))
        except (NotImplementedError, RuntimeError) as error:
            form = "bare" if mask is None else "padded"
            remedy = "let shapes and branches follow from sizes alone"
            if mask is not None:
                remedy += (
                    f", or, if it has to ask, add ({name!r}, 'padded') to WAITS of "
                    "tests/attention_impls/test_waits.py, and say what it asks"
                )
            raise AssertionError(
                f"{name} ({form}) asks for what a tensor holds, or sends it: {remedy}\n{error}"
            ) from error


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


def call(layer: Layer, x: Tensor, mask: Tensor | None, directions: list[bool]) -> None:
    for causal in directions:
        assert layer(x, Context(causal, mask)).y_BND.shape == x.shape
    if layer.card.capabilities.decode == "none":
        return
    state = layer.init_state(2, length=x.shape[1], device=x.device, dtype=x.dtype)
    step = Context(True, None if mask is None else mask[:, :1])
    for _ in range(2):
        y, state = layer(x[:, :1], step, state=state)
        assert y.shape == (2, 1, 12)


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
