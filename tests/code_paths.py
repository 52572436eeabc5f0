"""Mechanisms that stand for all: between them they declare all that any mechanism declares.

A check that is repeated for every mechanism runs over these by default, and over the others where
`slow` tests are asked for. A new file needs no line here: it is one of these if it declares
something that no other does.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from functools import cache
from typing import Any

import pytest

from attention_impls.contract import Attention, Layer
from lra.core.catalogue import find, names
from lra.core.loading import load

OVERRIDDEN = (
    "mix", "support", "borders", "kv_heads", "build_shared", "empty_state", "keep_source",
    "after_step", "convergence",
)  # fmt: skip
"""Methods that a class may leave as the contract has them."""
SAID = ("square", "mixes_queries", "crosses_causally")
"""Words of a class beside its card."""


def by_representatives(mechanisms: Iterable[str]) -> list[Any]:
    """Return these names as parameters of a test, slow where they do not stand for others."""
    standing = representatives()
    return [
        pytest.param(name, marks=() if name in standing else pytest.mark.slow)
        for name in mechanisms
    ]


def others(mechanisms: Iterable[str]) -> list[str]:
    """Return those of these names that do not stand for others."""
    return [name for name in mechanisms if name not in representatives()]


@cache
def representatives() -> tuple[str, ...]:
    """Return the names of mechanisms that declare, between them, all that any declares."""
    return tuple(cover({name: declarations(mechanism) for name, mechanism in loaded()}))


def cover(declared: dict[str, set[Hashable]]) -> list[str]:
    """Return names whose sets hold all that any does: each adds most, of several the first."""
    left, chosen = set().union(*declared.values()), []
    while left:
        best = max(declared, key=lambda name: len(declared[name] & left))
        chosen.append(best)
        left -= declared[best]
    return chosen


def declarations(mechanism: type[Layer]) -> set[Hashable]:
    """Return what decides by which code a mechanism is run: its family, each claim of its card,
    and which parts of the contract it writes anew."""
    card = mechanism.card
    contract = Attention if issubclass(mechanism, Attention) else Layer
    return {
        ("family", mechanism.__module__.split(".")[1], card.capabilities.causal),
        ("contract", contract),
        ("values", card.weights, card.linear),
        ("softmax", card.softmax),
        *(
            (claim, getattr(card.capabilities, claim))
            for claim in card.capabilities.__struct_fields__
        ),
        *((word, getattr(mechanism, word)) for word in SAID),
        *(
            ("overridden", name)
            for name in OVERRIDDEN
            if _source(mechanism, name) != _source(contract, name)
        ),
    }


def _source(kind: type[Layer], name: str) -> object:
    found = getattr(kind, name, None)
    return getattr(found, "__func__", found)


def loaded() -> Iterator[tuple[str, type[Layer]]]:
    """Yield every mechanism that loads; `test_every_file_loads` says what is wrong with others."""
    for name in names("mechanism"):
        try:
            mechanism: Any = load(find("mechanism", name))
        except Exception:
            continue
        yield name, mechanism
