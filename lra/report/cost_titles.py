"""Names of cost settings, no two alike."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import msgspec

from lra.core.errors import UsageError
from lra.core.scales import load_scale
from lra.report.load.settings import CostSetting
from lra.report.words import apart, differing, leaves


def parts_of(settings: Sequence[CostSetting]) -> dict[str, tuple[str, ...]]:
    """Return the words that set each setting apart, by id; for models also their differences from
    their scale's own and from others of their task and direction."""
    alike: dict[tuple[str, str, str], list[CostSetting]] = defaultdict(list)
    for one in settings:
        alike[one.scale, one.task, one.direction].append(one)
    found = {one.id: one.parts for one in settings}
    for group in alike.values():
        models = [one for one in group if one.model is not None]
        own = [leaves(one.model) for one in models]
        for one, text in zip(models, differing([*own, *_shipped(models[:1])]), strict=False):
            if text:
                first, *rest = one.parts
                found[one.id] = (f"{first} with {text}", *rest)
    return found


def _shipped(models: Sequence[CostSetting]) -> list[dict[str, Any]]:
    """Fields of the model in a shipped scale; empty for a scale of somebody's own."""
    for one in models:
        try:
            model = load_scale(one.scale).model_spec(one.task)
        except UsageError:
            continue
        return [leaves(msgspec.structs.replace(model, causal=one.direction == "causal"))]
    return []


def short_titles(settings: Sequence[CostSetting]) -> dict[str, str]:
    """Return the words that set each setting apart from the others, by id; empty for a single
    one."""
    parts = parts_of(settings)
    return dict(zip(parts, apart(list(parts.values())), strict=True))


def titles(settings: Sequence[CostSetting]) -> dict[str, str]:
    """Return the words for all conditions that figures of each setting share, by id."""
    found = {id: ", ".join(own) for id, own in parts_of(settings).items()}
    numbered = list(found.values())
    return {
        id: f"{text} ({n})" if numbered.count(text) > 1 else text
        for n, (id, text) in enumerate(found.items(), start=1)
    }
