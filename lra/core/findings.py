"""Findings of the conformance kit, as plain values, one for each law."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from lra.core.errors import UsageError
from lra.core.protocol import Frozen
from lra.core.validation import why_invalid

Verdict = Literal["held", "failed", "unclaimed", "not claimed", "reported", "skipped"]
"""held: claimed, and true of every case tried. failed: claimed, and not true. unclaimed: true of
every case tried, though the card does not claim it. not claimed: neither claimed nor true of every
case. reported: measured, for the reader to judge. skipped: could not be tried; `detail` says
why."""

MaskKind = Literal["none", "behind", "front", "scattered", "all", "first", "ragged", "mixed"]
"""Place of padding. behind, front: half of each example but the first. scattered: some of each but
the first. all: the first example. first: half of the first, behind. ragged: behind, as much as no
other example has. mixed: the first example, and half of the second, behind."""

DtypeName = Literal["float64", "float32", "bfloat16", "float16"]

BiasKind = Literal["drawn", "zero", "none"]
"""Biases of a layer's projections. drawn: normal numbers. none: the projections have none."""

InputKind = Literal["normal", "zeros", "identical", "large", "huge", "whole"]
"""Numbers of the input. identical: the tokens of an example are one. large: one token of each
example is thirty times as large. huge: ten thousand times. whole: values of attention are odd
numbers between two and four thousand."""

MOST = 2**31
"""Largest number in a case: sizes beyond fit no memory, seeds beyond no generator."""

_Count = Annotated[int, msgspec.Meta(ge=0, le=MOST)]
_Size = Annotated[int, msgspec.Meta(ge=1, le=MOST)]


class Case(Frozen, frozen=True, kw_only=True, omit_defaults=True):
    """One input that a law is tried on: shapes, the request, and the seed of the numbers."""

    n: _Count
    """Queries."""
    m: _Count | None = None
    """Keys of another sequence; None attends to the queries' own."""
    causal: bool = False
    mask: MaskKind = "none"
    """Where padding stands."""
    inputs: InputKind = "normal"
    position: str = "none"
    """Position scheme."""
    special: bool = False
    """Whether the request names positions of each example as special, padded ones among them."""
    training: bool = False
    """Whether in training, without dropout and noise; else in evaluation."""
    batch: _Count = 2
    heads: _Size = 4
    head_width: _Size = 8
    """Width of a query, a key and a value."""
    width: _Size | None = None
    """Width of the model; None is one that differs from that of all heads, where it may."""
    kv_heads: _Size | None = None
    """Heads of keys and values, where they are a setting; None leaves it as it is."""
    layer: Annotated[int, msgspec.Meta(ge=0, le=1000)] = 0
    """Index of the layer in its model."""
    biases: BiasKind = "drawn"
    dtype: DtypeName = "float64"
    """Type of inputs and parameters; in place of float64 it is float32 where somebody's own code
    takes nothing else."""
    trial: _Count = 0
    """Number of the configuration: 0 is the one asked for, others are the mechanism's own
    `trials`."""
    seed: _Count = 0

    def __str__(self) -> str:
        """Return the form that `parse` reads: `n=5 causal mask=behind`, without defaults."""
        plain = msgspec.to_builtins(self)
        return " ".join(key if value is True else f"{key}={value}" for key, value in plain.items())


def parse(text: str) -> Case:
    """Read a case such as `n=5 causal mask=behind`.

    Raises `UsageError` for an unknown word or a value that does not fit.
    """
    words = (word.partition("=") for word in text.split())
    plain = {key: value if equals else True for key, equals, value in words}
    for key in plain:
        if key not in Case.__struct_fields__:
            known = ", ".join(Case.__struct_fields__)
            raise UsageError(
                f"--case '{text}': '{key}' is none of {known}; write e.g. 'n=5 causal'"
            )
    try:
        return msgspec.convert(plain, Case, strict=False)
    except msgspec.ValidationError as error:
        why = why_invalid(error, plain, Case)
        raise UsageError(f"--case '{text}': {why}; write e.g. 'n=5 causal'") from error


class Tried(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Extent of the cases that a law was tried on: the least and the greatest of each size."""

    lengths: tuple[int, int] | None = None
    heads: tuple[int, int] | None = None
    head_widths: tuple[int, int] | None = None
    batches: tuple[int, int] | None = None
    dtypes: tuple[str, ...] = ()
    dropout: float = 0.0
    """Greatest rate."""
    refusals: dict[str, str] = {}
    """Why it cannot be built in some sizes, by these."""


class Finding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Outcome of one law for one mechanism. Unknown fields are allowed, as in all parts of a
    record."""

    law: str
    says: str = ""
    """The law in a few words."""
    verdict: Verdict
    cases: int = 0
    """Number of cases tried."""
    detail: str = ""
    """The difference and how large it is, or why it was skipped; one line."""
    case: Case | None = None
    """Smallest input found that breaks the law."""
    ending: Literal["", "error", "timeout", "crash"] = ""
    """Fault of the check itself, where it did not run to its end."""
    follows: str = ""
    """Law that fails on the same input, so that this failure says nothing new."""
    tried: Tried | None = None
    advice: str = ""
    """Options under which the law holds for somebody's class: its signature was read wrongly."""
    seconds: float = 0.0
