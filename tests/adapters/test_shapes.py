"""Shapes beside those of `zoo`: rotary tables, configurations with sizes, keywords alone.

B batch   N queries   M keys   D model width   H heads   K width of a head
"""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
import zoo_shapes
from adapted import KEEP_BM, KEEP_BN, D, H, M, N, built, exact, inputs, of_plain
from torch import Tensor

from attention_impls.contract import Context, Dims
from lra.adapters.adapt import adapt
from lra.core.errors import UnsupportedError, UsageError
from lra.core.findings import Case
from lra.verify import kit
from lra.verify.subject import Subject


def turn(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, ...]:
    """Turn pairs of numbers half a head apart, as the complex numbers that they are."""
    width = q.shape[-1] // 2
    angles = torch.arange(N)[:, None] * 10_000.0 ** (-torch.arange(width) / width)
    wave = torch.polar(torch.ones_like(angles), angles)

    def turned(x: Tensor) -> Tensor:
        z = torch.complex(*x.chunk(2, -1)) * wave
        return torch.cat([z.real, z.imag], -1)

    return turned(q), turned(k), v


@pytest.mark.parametrize("what", [zoo_shapes.Rotated, zoo_shapes.RotatedApart])
def test_rotary_tables_are_those_of_the_paper(what: Any) -> None:
    layer, x_BND = built(what), inputs()
    want = exact(of_plain(layer), x_BND, turn=turn)
    torch.testing.assert_close(layer(x_BND, Context()).y_BND, want, rtol=1e-5, atol=1e-5)
    assert not torch.allclose(want, exact(of_plain(layer), x_BND), atol=1e-2)
    said = adapt(what, "mine").card.assumed
    assert any("rotary positions" in words for words in said)


def test_a_padded_module_gets_tables_as_long_as_its_input() -> None:
    layer, x_BND = built(zoo_shapes.Rotated, pad_to=4), inputs()
    want = exact(of_plain(layer), x_BND, turn=turn)
    torch.testing.assert_close(layer(x_BND, Context()).y_BND, want, rtol=1e-5, atol=1e-5)


MASKED = [
    zoo_shapes.AddsPositions, zoo_shapes.SizesAndConfig, zoo_shapes.SizesBesideConfig,
    zoo_shapes.NeedyConfiguration, zoo_shapes.QueryWidth, zoo_shapes.ByKeyword,
]  # fmt: skip


@pytest.mark.parametrize("what", MASKED)
def test_it_computes_the_same(what: Any) -> None:
    layer, x_BND = built(what), inputs()
    want = exact(of_plain(layer), x_BND, keep_BM=KEEP_BN).masked_fill(~KEEP_BN.unsqueeze(-1), 0.0)
    found = layer(x_BND, Context(query_mask_BN=KEEP_BN)).y_BND
    torch.testing.assert_close(found, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("what", [zoo_shapes.SizesBesideConfig, zoo_shapes.ByKeyword])
def test_it_reads_another_sequence(what: Any) -> None:
    layer, x_BND, source_BMD = built(what), inputs(3), inputs(M, seed=2)
    want = exact(of_plain(layer), x_BND, source_BMD, KEEP_BM)
    found = layer(x_BND, Context(key_mask_BM=KEEP_BM), source_BMD=source_BMD).y_BND
    torch.testing.assert_close(found, want, rtol=1e-5, atol=1e-5)


def test_sizes_of_its_own_are_settings_beside_those_of_its_configuration() -> None:
    layer: Any = built(zoo_shapes.SizesBesideConfig, rank=5)
    assert layer.inner.bidirectional.rank == 5
    assert built(zoo_shapes.SizesAndConfig, options={"power": 3.0}).inner.bidirectional.power == 3.0  # type: ignore[union-attr]
    assert built(zoo_shapes.SizesAndConfig).card.capabilities.causal == "no"


def test_advice_on_a_size_of_no_known_name_is_right_at_every_width() -> None:
    with pytest.raises(UsageError) as refused:
        built(zoo_shapes.Unnamed)
    ((name, role),) = re.findall(r"'(\w+)=(\$width)'", str(refused.value))
    mechanism = adapt(zoo_shapes.Unnamed, "mine")
    config = mechanism.Config(**{name: role, "groups": "$heads"})  # type: ignore[arg-type]
    for heads in (1, 4):
        subject = Subject(mechanism, config, only=Case(n=5, heads=heads))
        for law in kit.select(["output", "gradcheck", "batch"]):
            assert kit.try_law(law, subject).verdict == "held"


def test_a_twin_that_cannot_be_built_is_refused_and_the_other_half_stays() -> None:
    mechanism = adapt(zoo_shapes.TwinFails, "mine")
    layer = mechanism(Dims(width=D, qkv_width=D, heads=H, max_length=16))
    x_BND = inputs()
    want = exact(of_plain(layer), x_BND)
    torch.testing.assert_close(layer(x_BND, Context()).y_BND, want, rtol=1e-5, atol=1e-5)
    with pytest.raises(UnsupportedError, match=r"causal = True.*needs a window"):
        layer(x_BND, Context(causal=True))
    assert built(zoo_shapes.TwinFails, window=3)(x_BND, Context(causal=True)).y_BND.shape


@pytest.mark.parametrize(("heads", "key_heads"), [(1, 1), (2, 1), (4, 1), (8, 2), (12, 3), (9, 1)])
def test_heads_of_keys_are_the_share_that_they_are_by_default(heads: int, key_heads: int) -> None:
    mechanism = adapt(zoo_shapes.Grouped, "mine")
    dims = Dims(width=72, qkv_width=72, heads=heads, max_length=16)
    layer: Any = mechanism(dims)
    assert (layer.inner.bidirectional.heads, layer.inner.bidirectional.key_heads) == (
        heads, key_heads,
    )  # fmt: skip
    set_to: Any = mechanism(dims, mechanism.Config(options={"num_key_value_heads": heads}))
    assert set_to.inner.bidirectional.key_heads == heads
