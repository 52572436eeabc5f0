"""Other meanings that the masks of somebody's class may have, where the one read from their names
does not fit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any, cast, get_args

import msgspec

from lra.adapters.assumptions import MEANINGS
from lra.adapters.external import External, is_causal_by_pair_mask
from lra.adapters.masks import MaskedConfig, MaskForm
from lra.core.findings import Case
from lra.verify.law import Law
from lra.verify.laws import causality, output, padding_content, ragged
from lra.verify.subject import Subject
from lra.verify.trial import try_case

LIKELY: tuple[MaskForm, ...] = ("keep", "ignore", "additive", "ones")
"""Meanings in the order of trial."""

assert set(LIKELY) == {form for form in get_args(MaskForm) if form}


def reads_a_mask(subject: Subject, case: Case) -> bool:
    """Whether a case of somebody's class has a mask whose meaning was read from its name."""
    stranger: External | None = getattr(subject.mechanism, "stranger", None)
    if stranger is None or not _roles(stranger) or "mask_form" in stranger.settings:
        return False
    always = getattr(subject.config, "always_mask", False) or stranger.needs_mask
    by_pairs = case.causal and is_causal_by_pair_mask(stranger)
    return case.mask != "none" or always or by_pairs


def fitting(subject: Subject, broken: Law) -> dict[str, Any]:
    """Return the settings under which its masks do what masks do, where those that it has do not
    fit; empty where they do, or where none fit. `broken` is a law that fails as they are."""
    pairs = is_causal_by_pair_mask(_stranger(subject))
    laws = [padding_content.LAW, *([causality.LAW] if pairs else [])]
    decisive = [law for law in laws if law.claimed(subject.card)]
    subject = replace(subject, only=None)
    if not decisive:
        return {}
    if broken not in (*decisive, output.LAW) and _all_hold(decisive, subject):
        return {}
    # Under a reading that hides all that is real padding changes nothing: `ragged` sees that.
    for settings in _others(subject):
        if _all_hold([*decisive, output.LAW, ragged.LAW], under(subject, settings)):
            return settings
    return {}


def under(subject: Subject, settings: dict[str, Any]) -> Subject:
    """Return the same class under other settings."""
    return replace(subject, config=msgspec.structs.replace(subject.config, **settings))


def meaning(subject: Subject) -> str:
    """Return how its mask was read: `mask as True = attend`."""
    stranger = _stranger(subject)
    return f"{stranger.asks[_roles(stranger)[0]]} as {MEANINGS[_form(subject)]}"


def _all_hold(laws: list[Law], subject: Subject) -> bool:
    return all(try_case(law, subject).verdict == "held" for law in laws)


def _others(subject: Subject) -> Iterator[dict[str, Any]]:
    """Yield the fields of the settings that differ from its own; those of its shape come first."""
    config = subject.config
    assert isinstance(config, MaskedConfig)
    shapes = (config.mask_per_head, not config.mask_per_head)
    for per_head, form in product(shapes, LIKELY):
        if (form, per_head) == (_form(subject), config.mask_per_head):
            continue
        settings: dict[str, Any] = {} if form == _form(subject) else {"mask_form": form}
        yield settings | ({} if per_head == config.mask_per_head else {"mask_per_head": per_head})


def _form(subject: Subject) -> MaskForm:
    stranger = _stranger(subject)
    assert isinstance(subject.config, MaskedConfig)
    return subject.config.mask_form or stranger.habit(stranger.asks[_roles(stranger)[0]])


def _stranger(subject: Subject) -> External:
    return cast(External, subject.mechanism.stranger)  # type: ignore[attr-defined]


def _roles(stranger: External) -> list[str]:
    return [role for role in ("key_mask", "pairs_mask") if role in stranger.asks]
