"""Trainings of encoder-decoders, whose mechanism stands in the slots that are not named."""

from __future__ import annotations

from typing import Any

import msgspec

from lra.core.protocol import Mechanism, SlotName
from lra.core.records import Metric, Record
from report import sample
from report.sample.settings import Named

CROSS: tuple[SlotName, ...] = ("encoder", "decoder")
"""Slots to name so that cross alone is open."""


def across(
    name: Named,
    task: str,
    accuracy: float | None = 0.5,
    *,
    named: tuple[SlotName, ...] = CROSS,
    beside: str = "sdpa",
    causal: bool = True,
    **more: Any,
) -> Record:
    """A training on a task that answers another sequence; `beside` stands in the named slots."""
    model = msgspec.structs.replace(
        sample.MODEL,
        body="encoder_decoder",
        pooling="none",
        causal=causal,
        slots={slot: Mechanism(name=beside) for slot in named},
    )
    return sample.quality(name, task, accuracy, model=model, **more)


def wrote(record: Record, exact: float | None, longest: float | None, why: str = "") -> Record:
    """The same training with answers that it wrote, or the reason why it cannot."""
    metrics = {
        key: Metric(value=value, unit="share", better="higher", why_null=why or None)
        for key, value in {"exact_match": exact, "rouge_l": longest}.items()
    }
    return msgspec.structs.replace(record, metrics={**record.metrics, **metrics})
