"""Patterns drawn: the mechanism's own support and weights, or the layer's true dependence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from cells import toy_card
from torch import Tensor

from attention_impls.contract import Attention, Context, Dims, Layer, Out, causal_mask
from lra.core import catalogue, loading
from lra.core.cells import ShowCell
from lra.core.errors import LraError, UnsupportedError
from lra.core.pattern import Pattern
from lra.core.protocol import Machine, Mechanism
from lra.measure.pattern import dependence, measure_pattern

N, HEADS, HEAD_WIDTH = 24, 2, 4
SMALL = {
    "longformer": {"window": 4, "leading": 2},
    "bigbird": {"block": 2, "random": 1},
    "sliding_window": {"left": 3, "right": 1},
    "sparse_strided": {"stride": 5},
    "block_local": {"block": 5},
}


def _cell(name: str, **fields: Any) -> ShowCell:
    sizes = {"length": N, "width": 6, "heads": HEADS, "head_width": HEAD_WIDTH}
    return ShowCell(
        machine=Machine(processor="any", cores=1),
        torch="2",
        threads=1,
        versions={},
        mechanism=Mechanism(name=name),
        **{**sizes, **fields},
    )


def _ours(name: str) -> type[Layer]:
    return loading.load(catalogue.find("mechanism", name))


def _measured(name: str, source: Path | None = None, **fields: Any) -> Pattern:
    layer = _ours(name)
    config = layer.Config(**SMALL.get(name, {}))
    given = None if source is None else str(source)
    return measure_pattern(_cell(name, **fields), layer, config, source=given)


@pytest.mark.parametrize(
    ("name", "causal"),
    [
        *((name, False) for name in SMALL),
        *((name, True) for name in ("sliding_window", "sparse_strided", "block_local")),
    ],
)
def test_the_support_drawn_is_the_mechanisms_own(name: str, causal: bool) -> None:
    layer = _ours(name)
    found = _measured(name, direction="causal" if causal else "bidirectional")
    dims = Dims(width=6, qkv_width=HEADS * HEAD_WIDTH, heads=HEADS, max_length=N)
    own: Any = layer(dims, layer.Config(**SMALL[name]), seed=0).double()
    context = Context(causal=causal)
    extra = own.project(torch.zeros(1, N, 6, dtype=torch.float64), context, None, None).extra
    support = own.support(N, N, context, **extra).reshape(-1, N, N).numpy()
    assert not support.all(), "a pattern that leaves nothing out would show nothing"
    assert (found.support_SNN() == support).all()
    assert (found.values_HNN()[:, ~support.any(0)] == 0).all()
    assert not found.measured


def test_weights_are_the_softmax_of_the_layers_own_queries_and_keys(tmp_path: Path) -> None:
    x = np.random.default_rng(3).normal(size=(9, 6))
    np.save(tmp_path / "x.npy", x)
    found = _measured("full", tmp_path / "x.npy", length=9)
    torch.manual_seed(0)
    layer: Any = _ours("full")(Dims(width=6, qkv_width=8, heads=2, max_length=9)).double()
    x_ND = torch.from_numpy(x)
    q, k = (f(x_ND).view(9, 2, 4).transpose(0, 1) for f in (layer.query, layer.key))
    wanted = (q @ k.mT / 2.0).softmax(-1).detach().numpy()
    assert found.kind == "weights" and found.heads == 2
    assert np.abs(found.values_HNN() - wanted).max() <= found.top / 255
    assert found.values_HNN().sum(-1) == pytest.approx(1.0, abs=9 * found.top / 255)


def test_another_input_gives_other_weights(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.random.default_rng(3).normal(size=(N, 6)))
    assert _measured("full", tmp_path / "x.npy") != _measured("full")
    assert _measured("full") == _measured("full")


def test_weights_that_may_be_negative_are_signed() -> None:
    found = _measured("linformer")
    assert found.scale == "signed" and found.values_HNN().min() < 0


def test_dependence_is_the_sum_of_the_jacobians_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lra.measure.pattern.COPIED", 100)
    lstm = _ours("lstm")
    torch.manual_seed(1)
    layer = lstm(Dims(width=4, qkv_width=4, heads=1, max_length=7)).double().eval()
    x_1ND = torch.randn(1, 7, 4, dtype=torch.float64)
    context = Context(causal=False)
    jacobian: Any = torch.autograd.functional.jacobian(lambda x: layer(x, context).y_BND, x_1ND)
    wanted = jacobian[0, :, :, 0].abs().sum((1, 3))
    torch.testing.assert_close(dependence(layer, x_1ND, context), wanted)


@pytest.mark.parametrize("name", ["lstm", "s4d"])
def test_what_has_no_weights_gets_its_dependence(name: str) -> None:
    found = _measured(name, direction="causal")
    assert (found.kind, found.heads, found.measured) == ("dependence", 1, True)
    # A convolution by way of Fourier transforms leaves rounding in the future.
    assert (found.support_SNN()[0] == causal_mask(N, N).numpy()).all()
    assert (np.diagonal(found.values_HNN()[0]) > 0).all()


class Before(Attention):
    """A stranger without an oracle: every position reads the one before."""

    card = toy_card(bidirectional=True)

    def attend(self, q: Any, k: Any, v_BHMV: Tensor, context: Context, state: Any = None) -> Any:
        return torch.nn.functional.pad(v_BHMV, (0, 0, 1, 0))[:, :, :-1], None


class Declared(Before):
    def support(self, n: int, m: int, context: Context) -> Tensor:
        return causal_mask(n, m)


class Constant(Layer):
    card = toy_card(bidirectional=True)

    def forward(self, x_BND: Tensor, context: Context, **kwargs: Any) -> Out:
        self._refuse(x_BND, context, None, None)
        return Out(torch.ones_like(x_BND))


class Endless(Before):
    def oracle(self, q: Any, k: Any, v: Tensor, context: Context) -> tuple[Tensor, Tensor]:
        return v, torch.full((1, HEADS, N, N), torch.inf)


def test_a_strangers_support_is_measured_unless_declared() -> None:
    before = np.eye(N, k=-1, dtype=bool)
    found = measure_pattern(_cell("mine"), Before, Before.Config(), source=None)
    assert (found.support_SNN()[0] == before).all() and found.measured
    found = measure_pattern(_cell("mine"), Declared, Declared.Config(), source=None)
    assert (found.support_SNN()[0] == causal_mask(N, N).numpy()).all() and not found.measured
    assert ((found.values_HNN()[0] > 0) == before).all()


@pytest.mark.parametrize(
    ("layer", "told"), [(Constant, "nothing to draw"), (Endless, "not finite")]
)
def test_what_cannot_be_drawn_says_why(layer: type[Layer], told: str) -> None:
    with pytest.raises(LraError, match=told):
        measure_pattern(_cell("mine"), layer, layer.Config(), source=None)


def test_gradients_of_a_large_layer_are_refused_before_they_take_an_hour() -> None:
    assert _measured("full", length=64, width=512).kind == "weights"
    with pytest.raises(LraError, match=r"\b64\b.*\b512\b.*\b16,384\b"):
        _measured("lstm", length=64, width=512)


def test_a_direction_that_is_not_claimed_is_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"longformer.*\bcausal\b"):
        _measured("longformer", direction="causal")
