"""Somebody's attention behind our contract computes what a plain computation with its weights does.

B batch   N queries   M keys   D model width   H heads   K width of a head
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import zoo
import zoo_configured
from adapted import KEEP_BM, KEEP_BN, B, D, H, M, N, built, exact, inputs, of_plain
from msgspec.structs import replace
from torch import Tensor, nn

from attention_impls.contract import Context, Dims
from lra.adapters.adapt import adapt, assumptions, configure, load
from lra.adapters.parameter_roles import CALL, IGNORED, names_by_role
from lra.core.catalogue import find
from lra.core.errors import UnsupportedError


def of_ours(layer: Any) -> list[tuple[Tensor, Tensor]]:
    parts = (layer.query, layer.key, layer.value, layer.output)
    return [(part.weight, part.bias) for part in parts]


def of_torch(layer: Any) -> list[tuple[Tensor, Tensor]]:
    inner = layer.inner.bidirectional
    triple = zip(inner.in_proj_weight.split(D), inner.in_proj_bias.split(D), strict=True)
    return [*triple, (inner.out_proj.weight, inner.out_proj.bias)]


CORES = [
    zoo.bare_function, zoo.function_of_pairs, zoo.needs_its_mask, zoo.CausalCore, zoo.Capitals,
    zoo.IgnoresInWords, zoo.Registered, zoo.Component,
]  # fmt: skip
MODULES = [
    zoo.Keeps, zoo.Ignores, zoo.BuiltCausal, zoo.ReadsContext, zoo.OneMaskForTwo, zoo.HandsOn,
    zoo_configured.Local, zoo_configured.Annotated, zoo_configured.OfAnInput,
]  # fmt: skip
TORCHS = [nn.MultiheadAttention, zoo.MultiHead, zoo.SelfMultiHead]
ALL = [*CORES, *MODULES, *TORCHS]

CAUSAL = {
    zoo.function_of_pairs, zoo.CausalCore, zoo.Capitals, zoo.Registered, zoo.BuiltCausal, *TORCHS,
}  # fmt: skip
CROSS = {*CORES, zoo.ReadsContext, nn.MultiheadAttention, zoo.MultiHead}
CROSS_CAUSALLY = {zoo.function_of_pairs, nn.MultiheadAttention, zoo.MultiHead}
UNMASKED = {zoo.bare_function, zoo.BuiltCausal}


def wanted(layer: Any, what: Any, *args: Any, **kwargs: Any) -> Tensor:
    """The plain computation with the weights of a zoo member."""
    if what in TORCHS:
        return exact(of_torch(layer), *args, **kwargs)
    if what in MODULES:
        return exact(of_plain(layer), *args, **kwargs)
    inner = layer.inner.bidirectional
    turns: dict[Any, Callable[..., tuple[Tensor, ...]]] = {
        zoo.CausalCore: lambda q, k, v: (q * inner.scale, k, v),
        zoo.Capitals: lambda q, k, v: (q * inner.scale, k, v),
        zoo.Registered: lambda q, k, v: (q, k, v * inner.gain),
    }
    return exact(of_ours(layer), *args, **kwargs, turn=turns.get(what, lambda *heads: heads))


@pytest.mark.parametrize("what", ALL)
def test_it_claims_what_its_signature_offers(what: Any) -> None:
    can = built(what).card.capabilities
    assert can.bidirectional
    assert (can.causal == "strict") == (what in CAUSAL)
    assert can.cross == (what in CROSS)
    assert (can.padding == "length") == (what not in UNMASKED)
    assert can.rotary == (what in CORES)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("what", ALL)
def test_it_computes_the_same(what: Any, causal: bool, masked: bool) -> None:
    layer, x_BND = built(what), inputs()
    mask = KEEP_BN if masked else None
    context = Context(causal=causal, query_mask_BN=mask)
    if (causal and what not in CAUSAL) or (masked and what in UNMASKED):
        with pytest.raises(UnsupportedError):
            layer(x_BND, context)
        return
    want = wanted(layer, what, x_BND, keep_BM=mask, causal=causal)
    if masked:
        seen = KEEP_BN if not causal else KEEP_BN & (KEEP_BN.cumsum(1) > 0)
        want = want.masked_fill(~seen.unsqueeze(-1), 0.0)
    torch.testing.assert_close(layer(x_BND, context).y_BND, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("what", sorted(CROSS, key=ALL.index))
def test_it_reads_another_sequence(what: Any, causal: bool, masked: bool) -> None:
    layer, x_BND, source_BMD = built(what), inputs(3), inputs(M, seed=2)
    mask = KEEP_BM if masked else None
    context = Context(causal=causal, key_mask_BM=mask)
    if (causal and what not in CROSS_CAUSALLY) or (masked and what in UNMASKED):
        with pytest.raises(UnsupportedError):
            layer(x_BND, context, source_BMD=source_BMD)
        return
    if causal and masked:
        context = Context(causal=True, key_mask_BM=(mask := KEEP_BM.roll(1, 0).fill_(True)))
    want = wanted(layer, what, x_BND, source_BMD, mask, causal)
    found = layer(x_BND, context, source_BMD=source_BMD).y_BND
    torch.testing.assert_close(found, want, rtol=1e-5, atol=1e-5)


def test_one_mask_for_two_sequences_is_no_attention_to_another() -> None:
    with pytest.raises(UnsupportedError, match=r"OneMaskForTwo.*\bsequence\b"):
        built(zoo.OneMaskForTwo)(inputs(), Context(), source_BMD=inputs(M))


@pytest.mark.parametrize("what", sorted(CROSS, key=ALL.index))
def test_another_sequence_can_be_denied(what: Any) -> None:
    mechanism = adapt(what, "mine")
    denied = configure(mechanism, config := mechanism.Config(cross=False))
    assert denied.card.capabilities == replace(mechanism.card.capabilities, cross=False)
    assert denied.card.assumed == assumptions(denied, config)
    assert any(words.endswith(" cross") for words in denied.card.assumed)
    layer = denied(Dims(width=D, qkv_width=D, heads=H, max_length=16), config)
    assert layer.name == type(layer).__name__ == "mine"
    with pytest.raises(UnsupportedError, match=r"mine.*\bsequence\b"):
        layer(inputs(3), Context(), source_BMD=inputs(M))


def test_what_is_read_into_a_call_is_said() -> None:
    said = adapt(nn.MultiheadAttention, "mine").card.assumed
    assert any("need_weights = False" in words for words in said)
    assert any("padded" in words for words in said)

    def core(q: Tensor, k: Tensor, v: Tensor, is_causal: bool = False) -> Tensor:
        return v

    said = adapt(core, "mine").card.assumed
    assert any(words.startswith("is_causal: True = ") for words in said)
    assert not any("padded" in words or "need_weights" in words for words in said)


@pytest.mark.parametrize("cross", [False, True])
def test_what_no_signature_offers_is_not_claimed_by_a_setting(cross: bool) -> None:
    mechanism = adapt(zoo.Keeps, "mine")
    assert configure(mechanism, mechanism.Config(cross=cross)) is mechanism
    assert assumptions(mechanism, mechanism.Config(cross=cross)) == mechanism.card.assumed


def test_a_layer_of_ours_claims_the_same_in_all_configurations() -> None:
    ours = load(find("mechanism", "performer"))
    assert configure(ours, ours.Config()) is ours


@pytest.mark.parametrize("what", [zoo.BuiltCausal, zoo.Registered, zoo.Recurrent])
def test_both_directions_train_one_set_of_parameters(what: Any) -> None:
    layer: Any = built(what)
    alone = sum(p.numel() for p in layer.inner.bidirectional.parameters())
    assert sum(p.numel() for p in layer.inner.parameters()) == alone
    for causal in (False, True):
        layer.zero_grad()
        layer(inputs(), Context(causal=causal)).y_BND.square().sum().backward()
        assert all(p.grad is not None and p.grad.any() for p in layer.inner.parameters())
    x_BND = inputs()
    before = layer(x_BND, Context(causal=True)).y_BND
    with torch.no_grad():
        for parameter in layer.inner.bidirectional.parameters():
            parameter.add_(1.0)
    assert not torch.allclose(layer(x_BND, Context(causal=True)).y_BND, before, atol=1e-3)


def test_what_is_recurrent_computes_with_the_shared_parameters() -> None:
    layer: Any = built(zoo.Recurrent)
    found = layer(inputs(), Context(causal=True)).y_BND
    torch.testing.assert_close(found, layer.inner.bidirectional.lstm(inputs())[0])


def test_draws_go_on_as_if_it_had_been_built_once() -> None:
    torch.manual_seed(0)
    zoo.BuiltCausal(D, H)
    after_one = torch.rand(3)
    torch.manual_seed(0)
    mechanism = adapt(zoo.BuiltCausal, "mine")
    mechanism(Dims(width=D, qkv_width=D, heads=H, max_length=16))
    assert torch.equal(torch.rand(3), after_one)


@pytest.mark.parametrize(
    ("what", "settings", "words"),
    [
        (zoo.Capitals, {}, ["built with Dim_Head = head_width"]),
        (zoo.Keeps, {}, ["built with dim = width, heads = heads"]),
        (zoo.Keeps, {"mask_form": "ignore"}, ["mask: which keys are padding; True = ignore"]),
        (zoo.function_of_pairs, {}, ["attn_mask: which query may read which key; True = attend"]),
        (zoo.BuiltCausal, {}, ["two instances with the same parameters, causal false and true"]),
    ],
)
def test_it_says_what_it_assumed(what: Any, settings: dict[str, Any], words: list[str]) -> None:
    mechanism = adapt(what, "mine")
    said = assumptions(mechanism, mechanism.Config(**settings))
    assert set(words) <= set(said), said
    assert settings or mechanism.card.assumed == said


def test_a_name_spelled_as_it_is_known_comes_before_one_in_capitals() -> None:
    assert names_by_role(dict.fromkeys(("Q", "q", "K")), CALL) == {"query": "q", "key": "K"}
    assert names_by_role(dict.fromkeys(("V", "K", "QUERIES", "Keys")), CALL) == {
        "query": "QUERIES", "key": "K", "value": "V"
    }  # fmt: skip


def test_a_mask_that_nothing_passes_is_not_spoken_of() -> None:
    def module(x: Tensor, attn_mask: Any = None) -> Tensor:
        return x

    said = adapt(module, "mine").card
    assert not any("attn_mask" in words for words in said.assumed)
    assert said.capabilities.padding == "none" and said.capabilities.causal == "no"


def test_a_form_that_is_set_wins_over_the_name() -> None:
    layer = built(zoo.Ignores, mask_form="keep")
    turned: Any = layer
    x_BND, kept = inputs(), Context(query_mask_BN=KEEP_BN)
    want = exact(of_plain(turned), x_BND, keep_BM=~KEEP_BN)[1:]
    found = layer(x_BND, kept).y_BND[1:]
    torch.testing.assert_close(found[KEEP_BN[1:]], want[KEEP_BN[1:]], rtol=1e-5, atol=1e-5)
    assert "padding_mask" in IGNORED


def test_a_mask_per_head_has_its_dimensions() -> None:
    seen: list[Any] = []

    def attention(query: Tensor, key: Tensor, value: Tensor, mask: Any = None) -> Tensor:
        seen.append(mask)
        return zoo.softmax(query, key, value, mask)

    layer = built(attention, mask_per_head=True)
    x_BND = inputs()
    found = layer(x_BND, Context(query_mask_BN=KEEP_BN)).y_BND
    assert seen[0].shape == (B, 1, 1, N)
    want = exact(of_ours(layer), x_BND, keep_BM=KEEP_BN).masked_fill(~KEEP_BN.unsqueeze(-1), 0)
    torch.testing.assert_close(found, want, rtol=1e-5, atol=1e-5)


def test_inputs_are_padded_to_a_multiple_and_the_padding_is_masked() -> None:
    layer: Any = built(zoo.Keeps, pad_to=4)
    lengths: list[int] = []
    layer.inner.bidirectional.register_forward_pre_hook(lambda _, a: lengths.append(a[0].shape[1]))
    x_BND = inputs()
    found = layer(x_BND, Context()).y_BND
    assert lengths == [8]
    torch.testing.assert_close(found, exact(of_plain(layer), x_BND), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("what", [zoo.Keeps, zoo.CausalCore, zoo.ReadsContext])
def test_a_mask_is_there_always_if_asked_for(what: Any) -> None:
    layer: Any = built(what, always_mask=True)
    masks: list[Any] = []
    layer.inner.bidirectional.register_forward_pre_hook(
        lambda _, __, named: masks.append(named["mask"]), with_kwargs=True
    )
    layer(inputs(), Context())
    (mask,) = masks
    assert mask.shape == (B, N) and mask.all()
