"""Generation keeps its laws, for decoders and encoder-decoders of any mechanism that decodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
import torch
from torch import Tensor
from training import generation_laws as laws

from lra.core.catalogue import find
from lra.core.errors import UnsupportedError, UsageError
from lra.core.loading import load
from lra.core.protocol import Mechanism, ModelSpec
from lra.models.build import build_model
from lra.models.language import named_layers
from lra.training.generate import Beams, beam, greedy
from lra.training.generate.search import length_penalty

MODELS: dict[str, Callable[[], laws.Network]] = {
    "decoder": laws.writer,
    "encoder-decoder": laws.speaker,
}
OF_ANY = [
    laws.greedy_is_the_same_without_caches,
    laws.a_beam_is_the_same_without_caches,
    laws.a_beam_of_one_is_greedy,
    laws.a_score_is_that_of_its_tokens,
    laws.what_ended_is_not_extended,
    laws.a_row_is_generated_as_if_alone,
    laws.no_trigram_comes_twice,
]
OF_THE_SEARCH = [
    laws.a_beam_as_wide_as_all_sequences_finds_the_best,
    laws.a_narrow_beam_is_the_plain_one,
    laws.equals_are_ordered_by_token,
]
Law = Callable[[laws.Network], None]


@pytest.fixture(autouse=True)
def on_one_thread(one_thread: None) -> None:
    """Models and inputs are small throughout."""


def named(law: Law) -> str:
    return law.__name__


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("law", OF_ANY, ids=named)
def test_a_model_keeps_the_law(law: Law, kind: str) -> None:
    law(MODELS[kind]())


@pytest.mark.parametrize("law", OF_THE_SEARCH, ids=named)
def test_the_search_keeps_the_law(law: Law) -> None:
    law(None)


def test_a_source_is_projected_once() -> None:
    laws.a_source_is_projected_once(laws.speaker())


@pytest.mark.parametrize(
    "mechanisms", [("grouped_query",), ("sliding_window", "sdpa"), ("lstm",), ("linear",)]
)
@pytest.mark.parametrize(
    "law",
    [laws.greedy_is_the_same_without_caches, laws.a_beam_is_the_same_without_caches],
    ids=named,
)
def test_so_do_other_mechanisms_of_a_decoder(law: Law, mechanisms: tuple[str, ...]) -> None:
    law(laws.writer(*mechanisms))


@pytest.mark.parametrize("cross", ["multi_query", "linear", "performer", "linformer"])
@pytest.mark.parametrize(
    "law", [laws.a_beam_is_the_same_without_caches, laws.a_source_is_projected_once], ids=named
)
def test_so_do_other_readers_of_a_source(law: Law, cross: str) -> None:
    if (law, cross) == (laws.a_source_is_projected_once, "linformer"):
        pytest.skip("it projects slots, which it makes of the inputs, not the inputs")
    law(laws.speaker(cross=cross))


def test_a_beam_as_wide_as_the_vocabulary_finds_the_best_pair() -> None:
    """Two tokens of a real model: each first one is kept."""
    model = laws.writer()
    tokens, _ = laws.given(model)
    found = beam(model, tokens, end=laws.END, limit=2, width=11, alpha=0.6)
    for row in range(3):
        every = []
        first = laws.next_log_p(model, tokens[row], None, [])
        for token in range(11):
            if token == laws.END:
                every.append((float(first[token]), [token]))
                continue
            then = laws.next_log_p(model, tokens[row], None, [token])
            pairs = (first[token] + then) / length_penalty(2, 0.6)
            every += [(float(pairs[last]), [token, last]) for last in range(11)]
        score, best = max(every)
        assert laws.told(found.best, row) == best
        assert float(found.best.scores_B[row]) == pytest.approx(score, abs=1e-12)


def test_a_penalty_is_one_for_one_token_and_for_alpha_zero() -> None:
    assert length_penalty(1, 0.6) == length_penalty(9, 0.0) == 1.0
    assert length_penalty(7, 1.0) == 2.0 and length_penalty(7, 2.0) == 4.0


def size(*tensors: Tensor) -> int:
    return sum(tensor.nbytes for tensor in tensors)


@pytest.mark.parametrize(("mechanism", "groups"), [("sdpa", 2), ("multi_query", 1)])
def test_caches_hold_keys_and_values_of_each_group(mechanism: str, groups: int) -> None:
    model = laws.speaker(decoder=mechanism, cross=mechanism)
    source, _ = laws.given(model)
    states = model.init_states(3, length=9, memory_BMD=model.encode(source))
    for state in states:
        own, cross = state.own, state.cross.kept
        assert size(own.k_BHTK, own.v_BHTV) == 3 * 2 * 9 * groups * 8 * 8
        assert size(cross.k_BGMK, cross.v_BGMV) == 3 * 2 * 7 * groups * 8 * 8


def test_caches_stay_where_they_are() -> None:
    """Greedy generation writes into the states that it began with."""
    model = laws.writer()
    seen: list[int] = []
    plain = model.body.blocks[0].step

    def step(x: Tensor, context: Any, state: Any, memory: Any = None) -> Any:
        y, after = plain(x, context, state, memory)
        seen.append(after.own.k_BHTK.data_ptr())
        return y, after

    model.body.blocks[0].step = step
    greedy(model, laws.given(model)[0], end=None, limit=9)
    assert len(seen) == 9 and len({*seen}) == 1


def test_without_an_end_every_row_is_as_long_as_the_limit() -> None:
    model = laws.writer()
    found = greedy(model, laws.given(model)[0], end=None, limit=5)
    assert found.lengths_B.tolist() == [5, 5, 5] and found.tokens_BN.shape == (3, 5)
    many = beam(model, laws.given(model)[0], end=None, limit=5, width=2)
    assert many.lengths_EW.tolist() == [[5, 5]] * 3 and many.decoding == "exact"


def test_a_result_is_as_wide_as_its_longest_row() -> None:
    model = laws.writer()
    tokens, _ = laws.given(model)
    found = greedy(model, tokens[1:2], end=laws.END, limit=17)
    assert found.tokens_BN.tolist() == [[laws.END]] and found.lengths_B.tolist() == [1]


def test_an_approximate_state_is_allowed_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    model = laws.writer()
    layer = type(model.body.blocks[0].mechanism)
    less = msgspec.structs.replace(layer.card.capabilities, decode="approximate")
    monkeypatch.setattr(layer, "card", msgspec.structs.replace(layer.card, capabilities=less))
    tokens, _ = laws.given(model)
    assert greedy(model, tokens, end=None, limit=2).decoding == "approximate"
    found = beam(model, tokens, end=None, limit=2, width=2)
    assert isinstance(found, Beams) and found.best.decoding == "approximate"


@pytest.mark.parametrize(
    "change",
    [
        {"width": 12},
        {"width": 0},
        {"alpha": -0.1},
        {"alpha": float("nan")},
        {"end": 11},
        {"end": -1},
        {"start": 11},
        {"start": None},
        {"pad": 11},
        {"limit": 0},
        {"tokens": torch.zeros(2, 0, dtype=torch.int64)},
        {"tokens": torch.zeros(0, 7, dtype=torch.int64)},
        {"tokens": torch.full((3, 7), 11)},
        {"tokens": torch.full((3, 7), -1)},
        {"mask": torch.arange(7) < torch.tensor([[7], [0], [3]])},
    ],
)
def test_a_request_that_means_nothing_is_one_line(change: dict[str, Any]) -> None:
    model = laws.speaker()
    tokens, mask = laws.given(model)
    tokens, mask = change.pop("tokens", tokens), change.pop("mask", mask)
    with pytest.raises(UsageError, match=r"^[^\n]+; [^\n]+$"):
        beam(model, tokens, mask, **{**laws.options(model, width=2), **change})


@pytest.mark.parametrize("change", [{"start": 1}, {"mask_BM": torch.ones(3, 7, dtype=torch.bool)}])
def test_a_decoder_takes_neither_start_nor_mask(change: dict[str, Any]) -> None:
    model = laws.writer()
    with pytest.raises(UsageError, match=r"^[^\n]+; [^\n]+$"):
        greedy(model, laws.given(model)[0], **change, end=None, limit=2)


def test_more_positions_than_a_table_has_are_refused() -> None:
    model, tokens = laws.writer(), laws.given(laws.writer())[0]
    assert greedy(model, tokens, end=None, limit=18).lengths_B.tolist() == [18] * 3
    with pytest.raises(UnsupportedError, match=r"25 tokens.* 24 "):
        greedy(model, tokens, end=None, limit=19)


@pytest.mark.parametrize(("length", "limit", "what"), [(25, 3, "source"), (7, 25, "new")])
def test_a_source_or_a_target_longer_than_its_table_is_refused(
    length: int, limit: int, what: str
) -> None:
    model = laws.lively(laws.sequence_laws.built("bart", size=laws.SIZE))
    tokens = torch.ones(2, length, dtype=torch.int64)
    with pytest.raises(UnsupportedError, match=rf"25 {what} tokens.* 24 "):
        greedy(model, tokens, start=laws.START, end=None, limit=limit)


def test_a_mechanism_that_keeps_nothing_of_a_source_is_refused() -> None:
    model = laws.speaker(cross="nystromformer")
    with pytest.raises(UnsupportedError, match=r"^nystromformer .*slot cross$"):
        greedy(model, *laws.given(model), **laws.options(model))


def test_a_mechanism_that_cannot_decode_is_refused() -> None:
    model = laws.writer("synthesizer")
    with pytest.raises(UnsupportedError, match=r"^synthesizer cannot decode"):
        greedy(model, laws.given(model)[0], end=None, limit=2)


def test_a_classifier_is_refused() -> None:
    spec = ModelSpec(layers=1, width=16, qkv_width=16, heads=2, mlp_width=16)
    model = build_model(
        spec, layers=named_layers([Mechanism(name="full")]), vocabulary=11, classes=3, length=9,
        position=load(find("position", "none")),
    )  # fmt: skip
    with pytest.raises(UsageError, match="predicts tokens"):
        greedy(model, torch.ones(1, 3, dtype=torch.int64), end=None, limit=2)
