"""Faults that people made in generation, each caught by a law."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from training import generation_laws as laws

from lra.models.block import Block, BlockState
from lra.models.sequence_model import SequenceModel
from lra.training.generate import beam, greedy, search
from lra.training.generate.steps import Steps

Patch = pytest.MonkeyPatch
# The package has functions of these names too.
BEAM, GREEDY = (
    __import__(f"lra.training.generate.{n}", fromlist=["_"]) for n in ("beam", "greedy")
)


def cache_not_reordered(patch: Patch) -> None:
    """Rows are multiplied once, and then stay where they are."""
    plain = Steps.select

    def select(self: Steps, index: Tensor) -> None:
        if self._states[0].own.seen_B.shape != index.shape:
            plain(self, index)

    patch.setattr(Steps, "select", select)


def cross_cache_of_other_examples(patch: Patch) -> None:
    """All that was kept of the sources is repeated whole, the rest row by row."""
    plain = Block.select_state

    def select_state(self: Block, state: BlockState, index: Tensor) -> BlockState:
        found = plain(self, state, index)
        if state.cross is None or len(index) == len(state.cross.seen_B):
            return found
        tiled = torch.arange(len(index)) % len(state.cross.seen_B)
        return found._replace(cross=self.cross.select_state(state.cross, tiled))

    patch.setattr(Block, "select_state", select_state)


def source_mask_forgotten(patch: Patch) -> None:
    """The mask of the target, of which there is none, is that of the source."""
    plain = SequenceModel.init_states

    def init_states(self: SequenceModel, batch: int, **given: Any) -> list[BlockState]:
        return plain(self, batch, **{**given, "source_mask_BM": None})

    patch.setattr(SequenceModel, "init_states", init_states)


def positions_off_by_one(patch: Patch) -> None:
    plain = Steps.__init__

    def start(self: Steps, model: Any, states: Any, *, first: int = 0) -> None:
        plain(self, model, states, first=first)
        self._taken = 1

    patch.setattr(Steps, "__init__", start)


def start_fed_twice(patch: Patch) -> None:
    """Each step takes in the token before the last."""
    plain = Steps.feed

    def feed(self: Steps, tokens: Tensor) -> Tensor:
        late = getattr(self, "late", tokens)
        self.late = tokens
        return plain(self, late if late.shape == tokens.shape else tokens)

    patch.setattr(Steps, "feed", feed)


def penalty_twice(patch: Patch) -> None:
    plain = search.length_penalty
    patch.setattr(search, "length_penalty", lambda *asked: plain(*asked) ** 2)


def penalty_counts_the_start(patch: Patch) -> None:
    plain = search.length_penalty
    patch.setattr(search, "length_penalty", lambda n, alpha: plain(n + 1, alpha))


def best_before_the_running_score(patch: Patch) -> None:
    """The likeliest tokens are chosen first, and the score of their rows is added then."""

    def candidates(live: Tensor, log_p: Tensor, count: int) -> tuple[Tensor, Tensor, Tensor]:
        examples, width = live.shape
        flat = log_p.view(examples, width, -1).transpose(1, 2).flatten(1)
        place = flat.topk(count, dim=1).indices
        sums = flat.gather(1, place) + live.gather(1, place % width)
        sums, order = sums.sort(dim=1, descending=True, stable=True)
        place = place.gather(1, order)
        return sums, place % width, place // width

    patch.setattr(search, "_candidates", candidates)


def as_many_candidates_as_the_beam(patch: Patch) -> None:
    """Sequences that end take the places of live ones."""
    plain = search._candidates
    patch.setattr(search, "_candidates", lambda live, log_p, n: plain(live, log_p, n // 2))


def live_without_penalty_against_finished_with_it(patch: Patch) -> None:
    patch.setattr(search, "best_to_come", lambda live, limit, alpha: live[:, 0])


def any_of_equals(patch: Patch) -> None:
    def first_best(scores: Tensor, count: int) -> tuple[Tensor, Tensor]:
        last = scores.flip(1).sort(dim=1, descending=True, stable=True)
        return last.values[:, :count], scores.shape[1] - 1 - last.indices[:, :count]

    patch.setattr(search, "_first_best", first_best)


def bigrams_banned(patch: Patch) -> None:
    def without_repeats(log_p: Tensor, tokens: Tensor) -> Tensor:
        begun = tokens[:, :-1] == tokens[:, -1:]
        times = torch.zeros_like(log_p, dtype=torch.int32)
        return log_p.masked_fill(times.scatter_add_(1, tokens[:, 1:], begun.int()) > 0, -torch.inf)

    for module in (GREEDY, BEAM):
        patch.setattr(module, "without_repeats", without_repeats)


def rows_go_on_behind_their_end(patch: Patch) -> None:
    """Nothing ever ends, and lengths are cut afterwards."""
    for module in (GREEDY, BEAM):
        name = module.__name__.rpartition(".")[2]
        plain = getattr(module, name)

        def unending(*given: Any, plain: Any = plain, **asked: Any) -> Any:
            return plain(*given, **{**asked, "end": None})

        patch.setattr(laws, name, unending)


WRITER, SPEAKER = laws.writer, laws.speaker
CAUGHT: list[tuple[Callable[[Patch], None], Callable[..., None], Callable[[], Any]]] = [
    (cache_not_reordered, laws.a_beam_is_the_same_without_caches, WRITER),
    (cross_cache_of_other_examples, laws.a_beam_is_the_same_without_caches, SPEAKER),
    (source_mask_forgotten, laws.greedy_is_the_same_without_caches, SPEAKER),
    (positions_off_by_one, laws.greedy_is_the_same_without_caches, WRITER),
    (start_fed_twice, laws.greedy_is_the_same_without_caches, SPEAKER),
    (penalty_twice, laws.a_score_is_that_of_its_tokens, WRITER),
    (penalty_counts_the_start, laws.a_score_is_that_of_its_tokens, SPEAKER),
    (best_before_the_running_score, laws.a_narrow_beam_is_the_plain_one, WRITER),
    (as_many_candidates_as_the_beam, laws.a_narrow_beam_is_the_plain_one, WRITER),
    (live_without_penalty_against_finished_with_it, laws.a_narrow_beam_is_the_plain_one, WRITER),
    (any_of_equals, laws.equals_are_ordered_by_token, WRITER),
    (bigrams_banned, laws.no_trigram_comes_twice, WRITER),
    (rows_go_on_behind_their_end, laws.what_ended_is_not_extended, WRITER),
]


@pytest.fixture(autouse=True)
def on_one_thread(one_thread: None) -> None:
    """Models and inputs are small throughout."""


@pytest.mark.parametrize(("fault", "law", "built"), CAUGHT, ids=lambda one: one.__name__)
def test_a_planted_fault_breaks_its_law(
    monkeypatch: Patch,
    fault: Callable[[Patch], None],
    law: Callable[..., None],
    built: Callable[[], Any],
) -> None:
    law(built())
    fault(monkeypatch)
    with pytest.raises(AssertionError):
        law(built())


def test_the_faults_leave_a_generation_that_runs() -> None:
    for fault, _, built in CAUGHT:
        with pytest.MonkeyPatch.context() as patch:
            fault(patch)
            model = built()
            asked = laws.options(model)
            assert len(greedy(model, *laws.given(model), **asked).tokens_BN) == 3
            assert beam(model, *laws.given(model), **asked, width=2).tokens_EWN.shape[:2] == (3, 2)
