"""Written answers are those that a model gives one by one, and are scored against the task's."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from attention_impls.dense.sdpa import Sdpa
from attention_impls.lowrank.nystromformer import Nystromformer
from attention_impls.positions.learned import Learned
from lra.core.dataset import UNASKED, Split
from lra.core.errors import UnsupportedError
from lra.core.forms import Size
from lra.core.protocol import BlockForm
from lra.models.language import Answers, Slots, build_encoder_decoder
from lra.models.layers import Layers
from lra.models.sequence_model import SequenceModel
from lra.training.written import Written, write_answers

FIRST, CLASSES = 1, 5
SIZE = Size(layers=2, width=16, qkv_width=16, heads=2, mlp_width=16, vocabulary=8, length=9)


def model(cross: type = Sdpa) -> SequenceModel:
    slots = Slots(Layers.of(Sdpa), Layers.of(Sdpa), Layers.of(cross))
    answers = Answers(CLASSES, FIRST, ())
    return build_encoder_decoder(
        SIZE, BlockForm(), slots=slots, positions=(Learned, Learned), answers=answers, seed=3
    )


def by_hand(network: SequenceModel, source: np.ndarray, start: int, number: int) -> list[int]:
    """Labels written one by one, the whole answer so far taken in anew for each."""
    given = [start]
    for _ in range(number):
        source_1M = torch.from_numpy(source.astype(np.int64))[None]
        logits = network(source_1M, torch.tensor([given])).logits_LC[0, -1]
        given.append(FIRST + int(logits.argmax()))
    return [token - FIRST for token in given[1:]]


def written(network: SequenceModel, *, spoilt: int) -> Written:
    """Scores of answers that are the model's own, but for the last label of the first rows."""
    draws, tokens, labels = np.random.default_rng(1), [], []
    for row in range(8):
        source = draws.integers(1, 6, 3 + row % 4).astype(np.uint8)
        start, number = 6 + row % 2, 2 + row % 3
        own = by_hand(network, source, start, number)
        if row < spoilt:
            own[-1] = (own[-1] + 1) % CLASSES
        given = np.array([start, *(FIRST + label for label in own[:-1])], dtype=np.uint8)
        tokens += [source, given]
        labels += [np.full(len(source), UNASKED), np.array(own)]
    split = Split.of(tokens, np.concatenate(labels), 2, by_token=True)
    return write_answers(
        network, split, torch.device("cpu"), rules="fixed", length=None, first=FIRST
    )


@pytest.mark.parametrize("spoilt", [0, 3, 8])
def test_answers_are_written_one_by_one_from_their_own_starts(spoilt: int) -> None:
    found = written(model().eval(), spoilt=spoilt)
    assert found.exact == (8 - spoilt) / 8
    assert (found.rouge.one == found.rouge.longest == 1.0) == (spoilt == 0)
    # A wrong last label spoils a larger share of the pairs than of the words.
    assert found.rouge.two <= found.rouge.longest <= found.rouge.one
    assert (found.rouge.two < found.rouge.longest) == (spoilt > 0)


def test_who_keeps_nothing_of_a_source_writes_nothing() -> None:
    with pytest.raises(UnsupportedError, match="nystromformer"):
        written(model(Nystromformer).eval(), spoilt=0)
