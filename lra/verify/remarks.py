"""Remarks on somebody's class that no law makes.

B batch   N queries   M keys   D model width
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import torch

from attention_impls.contract import Context
from lra.adapters.directions import Directions
from lra.adapters.external import External, is_causal_by_pair_mask
from lra.core.errors import LraError
from lra.core.findings import Case
from lra.verify.subject import Subject

QUERIES, KEYS = 3, 5


def why_not_causal(subject: Subject) -> str:
    """Return why a class whose direction is decided when it is built has no causal form; empty
    where it has one, or was not to have one."""
    if not _is_built_causal(subject):
        return ""
    try:
        why = cast(Directions, subject.build(Case(n=7)).inner).why_not_causal
    except Exception:
        # Laws will find the error, in the other direction.
        return ""
    return f"not causal: it cannot be built so: {' '.join(why.split())}" if why else ""


def causal_keys(subject: Subject) -> str:
    """Return which keys causal queries read where there are more keys: the first, or the last;
    empty for a class without a causal flag or keys of its own."""
    can, stranger = subject.card.capabilities, _stranger(subject)
    if stranger is None or can.causal == "no" or not can.cross:
        return ""
    flag = stranger.sizes.get("causal") or stranger.asks.get("causal", "")
    if is_causal_by_pair_mask(stranger):
        instead = stranger.asks["pairs_mask"]
        return (
            f"{flag}: not tried, since {instead} says which query may read which key"
            if flag
            else ""
        )
    about = f"{flag} with {QUERIES} queries and {KEYS} keys"
    try:
        read_NM = _pairs_read(subject)
    except LraError as error:
        return f"{about}: not tried: {' '.join(str(error).split())}"
    except Exception as error:
        return f"{about}: not tried: {' '.join(f'{type(error).__name__}: {error}'.split())}"
    for words, ahead in (("first", 0), ("last", KEYS - QUERIES)):
        if torch.equal(read_NM, torch.ones(QUERIES, KEYS).tril(ahead).bool()):
            return f"{about}: {words} keys"
    last = ", ".join(str(int(row.nonzero()[-1]) if row.any() else "none") for row in read_NM)
    return f"{about}: neither first keys nor last keys; the last that each query reads: {last}"


@torch.no_grad()
def _pairs_read(subject: Subject) -> torch.Tensor:
    """Return which keys each query reads, (N, M): its output changes with theirs."""
    members = {"crosses_causally": True, "__module__": subject.mechanism.__module__}
    mechanism = type(subject.mechanism.__name__, (subject.mechanism,), members)
    subject = replace(subject, mechanism=mechanism)
    case = Case(n=QUERIES, m=KEYS, causal=True, batch=1)
    layer = subject.build(case)
    x_BND, source_BMD = subject.inputs(case)
    assert source_BMD is not None
    read_NM = torch.zeros(QUERIES, KEYS, dtype=torch.bool)
    wanted = layer(x_BND, Context(causal=True), source_BMD=source_BMD).y_BND
    for key in range(KEYS):
        other = source_BMD.detach().clone()
        other[:, key] *= -16.0
        found = layer(x_BND, Context(causal=True), source_BMD=other).y_BND
        read_NM[:, key] = ((found - wanted).abs().amax(-1)[0] > subject.allowed(0.0)).cpu()
    return read_NM


def _is_built_causal(subject: Subject) -> bool:
    stranger = _stranger(subject)
    return stranger is not None and stranger.built_causal


def _stranger(subject: Subject) -> External | None:
    return getattr(subject.mechanism, "stranger", None)
