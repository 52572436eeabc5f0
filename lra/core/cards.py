"""Cards: the declarations of a mechanism, a position scheme or a task about itself, as plain
data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import msgspec

from lra.core.errors import UsageError

Causal = Literal["no", "values-only", "strict"]
Padding = Literal["none", "content", "length"]
Decode = Literal["none", "approximate", "exact"]
CrossDecode = Literal["none", "exact"]
Softmax = Literal["always", "configured", "in the limit", "approximates", "of its own", "never"]
Weights = Literal["convex", "normalised", "free"]
TaskMetric = Literal["accuracy", "bits_per_byte", "nat"]
Asks = Literal["example", "token", "sequence", "query"]

_ASKED_OF: dict[Asks, int] = {"token": 1, "sequence": 2, "query": 2}
"""Sequences of an example whose tokens are asked; one with one label may have any number."""

# From the weakest claim to the strongest.
_CAUSAL: tuple[Causal, ...] = ("no", "values-only", "strict")
_PADDING: tuple[Padding, ...] = ("none", "length", "content")
_DECODE: tuple[Decode, ...] = ("none", "approximate", "exact")
_CROSS_DECODE: tuple[CrossDecode, ...] = ("none", "exact")


class Capabilities(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Requests that a mechanism can honour. Others are refused, never ignored."""

    bidirectional: bool = False
    causal: Causal = "no"
    """strict: no output depends on any later input. values-only: later inputs may still choose
    which earlier keys are seen."""
    cross: bool = False
    """Whether queries and keys may come from two sequences of different lengths."""
    padding: Padding = "none"
    """content: neither the content nor the number of padded positions changes anything. length:
    their content changes nothing, their number may."""
    decode: Decode = "none"
    cross_decode: CrossDecode = "none"
    """exact: it keeps what it needs of another sequence in a state of that sequence alone, and
    queries in pieces read it as they would the sequence."""
    bias: bool = False
    """Whether it honours a position scheme that adds to the logits (ALiBi and its like)."""
    rotary: bool = False
    """Whether it honours a position scheme that rotates queries and keys."""
    arbitrary_mask: bool = False
    """Whether it honours a mask of its own for each pair of a query and a key."""
    positions_by_index: bool = False
    """Whether places may be given for queries and keys: it tells positions apart by their places,
    through the position scheme, and by nothing else but causality."""
    fixed_length: bool = False
    """Whether it has parameters tied to a maximum length; a longer input is refused."""
    stochastic: bool = False
    """Whether it holds random draws; they come from the seed and live in the state dict."""


def meet(found: Sequence[Capabilities]) -> Capabilities:
    """Return the requests that all of several mechanisms together can honour, as the layers of one
    stack; draws and fixed lengths are those of any of them."""
    return Capabilities(
        bidirectional=all(one.bidirectional for one in found),
        causal=min((one.causal for one in found), key=_CAUSAL.index),
        cross=all(one.cross for one in found),
        padding=min((one.padding for one in found), key=_PADDING.index),
        decode=min((one.decode for one in found), key=_DECODE.index),
        cross_decode=min((one.cross_decode for one in found), key=_CROSS_DECODE.index),
        bias=all(one.bias for one in found),
        rotary=all(one.rotary for one in found),
        arbitrary_mask=all(one.arbitrary_mask for one in found),
        positions_by_index=all(one.positions_by_index for one in found),
        fixed_length=any(one.fixed_length for one in found),
        stochastic=any(one.stochastic for one in found),
    )


class AttentionCard(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Declaration of one mechanism."""

    title: str
    paper: str
    """Authors, title, venue; arXiv identifier where there is one."""
    year: int
    time: str
    """Growth of time with the field's letters, e.g. `O(n m d)`."""
    memory: str
    """Growth of extra memory beyond the inputs and outputs."""
    capabilities: Capabilities
    softmax: Softmax = "never"
    """Whether it equals softmax attention over all permitted pairs. always: it does. configured:
    in the configuration that `exact_at` names. in the limit: its error falls at the rate that
    `convergence` declares. approximates: meant to come near, without such a law. of its own: near
    softmax attention over keys or pairs that it makes of those given, see `Attention.comes_near`.
    never: it computes another function."""
    weights: Weights = "free"
    """Weights of the values in an output. convex: not negative, and they sum to 1. normalised: they
    sum to 1. free: neither."""
    linear: bool = True
    """Whether outputs are linear in the values."""
    without_effect: tuple[str, ...] = ("special_BN",)
    """Fields of `Context` and settings that it takes, and that change nothing in it."""
    assumed: tuple[str, ...] = ()
    """Claims that an adapter read into the signatures of somebody's class; empty for a written
    card."""


def cycle_card(cards: Sequence[AttentionCard]) -> AttentionCard:
    """Return the declaration of several mechanisms that take turns over a model's layers."""
    return AttentionCard(
        title=" + ".join(one.title for one in cards),
        paper="; ".join(dict.fromkeys(one.paper for one in cards)),
        year=max(one.year for one in cards),
        time=" + ".join(dict.fromkeys(one.time for one in cards)),
        memory=" + ".join(dict.fromkeys(one.memory for one in cards)),
        weights="convex" if all(one.weights == "convex" for one in cards) else "free",
        linear=all(one.linear for one in cards),
        capabilities=meet([one.capabilities for one in cards]),
    )


class PositionCard(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Declaration of one position scheme."""

    title: str
    paper: str
    year: int
    acts_on: Literal["nothing", "input", "queries-keys", "logits"]
    fixed_length: bool = False


GENERATED: tuple[Asks, ...] = ("token", "sequence")
"""Tasks whose answers follow one from another: their models generate."""


class TaskCard(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Declaration of one task."""

    title: str
    source: str
    """The paper or data set that the task comes from."""
    classes: int
    vocabulary: int
    """Number of token ids, padding included where the task has any."""
    inputs: int = 1
    """Sequences per example: 2 for pairs of documents, and for a source and what is asked of it."""
    length: int | None = None
    """Tokens of every sequence, where the task has a single length; None is any."""
    picture: bool = False
    """Whether a sequence is a square picture, grey values row by row."""
    asks: Asks = "example"
    """example: an example has one label. token: each of many tokens has a label of its own,
    predicted from the tokens up to it alone: by strictly causal mechanisms. sequence: the second of
    two sequences is what was generated so far of an answer to the first, and each of its tokens
    asks for the next. query: the second holds queries, and each asks by itself."""
    metric: TaskMetric = "accuracy"
    """Figure to quote and choose by. bits_per_byte and nat: the mean loss of an answer, in bits and
    in nat, the less the better."""
    answers_first: int | None = None
    """Token of class 0, the others following, where answers are tokens of the sequence; None where
    they are not."""
    stand_in: str = ""
    """Description of the generated data that stands in where the real data is not at hand; empty if
    the generator is the task."""

    def picture_width(self, length: int) -> int | None:
        """Return the pixels in a row of a picture of so many; None where the task has no
        pictures."""
        return math.isqrt(length) if self.picture else None

    def __post_init__(self) -> None:
        """Refuse a number of sequences that cannot be asked so."""
        needed = _ASKED_OF.get(self.asks, self.inputs)
        if self.inputs != needed:
            raise UsageError(
                f'its card has asks = "{self.asks}" and inputs = {self.inputs}; set inputs = '
                f"{needed}, or asks to what it is"
            )
