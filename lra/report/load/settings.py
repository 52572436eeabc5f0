"""Settings: the conditions that figures of one table share, as typed values; their words are made
last."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import msgspec
from msgspec import UNSET, UnsetType

from lra.core.cells import BaselineCell, ErrorCell, MeasuredCell, QualityCell
from lra.core.hashing import value_hash
from lra.core.protocol import SLOTS, Machine, ModelSpec, SlotName
from lra.report.load.measurement import Measurement, measured
from lra.report.load.versions import Pairs, among, apart, measuring, words
from lra.report.words import count, listing, machine_words

_DIGITS = 12
_SOURCES = {"generated": "generated data", "file": "data from files", "hub": "data from a hub"}


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """Conditions that the figures of one table share."""

    @property
    def id(self) -> str:
        """Hash of all fields."""
        return value_hash([type(self).__name__, self])[:_DIGITS]

    @property
    def parts(self) -> tuple[str, ...]:
        """Words that set it apart from others of its kind."""
        raise NotImplementedError


class QualitySetting(Setting, frozen=True, kw_only=True):
    """Conditions that the trainings of one table share."""

    scale: str
    rules: str
    track: str
    source: str
    precision: str
    by_token: bool
    """Whether models answer at each token, strictly causal or from another sequence."""
    slots: tuple[SlotName, ...] | UnsetType = UNSET
    """Slots of an encoder-decoder in which the mechanisms of the rows stand; unset for one
    stack."""

    @property
    def parts(self) -> tuple[str, ...]:
        """Scale, and each value that is not the usual one."""
        parts = (
            self.scale,
            self.data if self.source != "generated" else "",
            f"{self.rules} rules" if self.rules != "fixed" else "",
            f"{self.track} track" if self.track != "matched" else "",
            self.precision if self.precision != "float32" else "",
            "token by token" if self.by_token and self.slots is UNSET else "",
            "" if self.slots is UNSET else slot_words(self.slots),
        )
        return tuple(part for part in parts if part)

    @property
    def data(self) -> str:
        """Source of the data, in words."""
        return _SOURCES[self.source]


def slot_words(slots: Sequence[SlotName]) -> str:
    """Return words for the slots of an encoder-decoder in which mechanisms stand."""
    if len(slots) == len(SLOTS):
        return "in all slots of an encoder-decoder"
    return f"in the {listing(slots)} {'slot' if len(slots) == 1 else 'slots'} of an encoder-decoder"


class BaselineSetting(Setting, frozen=True, kw_only=True):
    """Conditions that simple baselines share."""

    scale: str

    @property
    def parts(self) -> tuple[str, ...]:
        """Scale."""
        return (self.scale,)


class CostSetting(Setting, frozen=True, kw_only=True):
    """Conditions that timed calls share: the machine, the call, and its sizes without the
    length."""

    scale: str
    level: str
    task: str
    direction: str
    batch: int | None
    """Examples of each call; None where calls of all lengths have as many `tokens`: figures are
    then per example."""
    tokens: int | None = None
    heads: int
    head_width: int
    dtype: str
    compiled: bool
    device: str
    machine: Machine
    threads: int
    torch: str
    model: ModelSpec | None
    version: Pairs = ()
    """Versions of those features of the measuring code in which otherwise equal settings differ."""

    @property
    def parts(self) -> tuple[str, ...]:
        """Call, its sizes and the machine."""
        return (*self.called, *self.where)

    @property
    def called(self) -> tuple[str, ...]:
        """Call and its sizes."""
        return (
            {
                "attention": "the attention alone",
                "model": f"a model of {self.task}, scale {self.scale}",
            }.get(self.level, f"one {self.level}"),
            self.direction,
            f"batch {self.batch}"
            if self.tokens is None
            else f"per example in calls of {self.tokens:,} positions",
            f"{count(self.heads, 'head')} of width {self.head_width}",
            self.dtype,
            *(["by torch.compile"] if self.compiled else []),
            *([f"measured by {words(self.version)}"] if self.version else []),
        )

    @property
    def where(self) -> tuple[str, ...]:
        """Machine, threads and torch."""
        return machine_words(self.machine), count(self.threads, "thread"), f"torch {self.torch}"


class ErrorSetting(Setting, frozen=True, kw_only=True):
    """Conditions that errors of approximations share."""

    scale: str
    direction: str
    batch: int
    heads: int
    head_width: int
    dtype: str
    device: str

    @property
    def parts(self) -> tuple[str, ...]:
        """Sizes of a call and its dtype."""
        return (
            self.direction,
            f"batch {self.batch}",
            f"{count(self.heads, 'head')} of width {self.head_width}",
            f"{self.dtype} on {self.device}",
        )


def setting_of(cell: MeasuredCell) -> Setting:
    """Return the setting of a cell's figures."""
    if isinstance(cell, QualityCell):
        return QualitySetting(
            scale=cell.scale,
            rules=cell.data.rules,
            track=cell.track,
            source=cell.data.source,
            precision=cell.training.precision,
            by_token=cell.model.pooling == "none",
            slots=cell.model.open_slots or UNSET,
        )
    if isinstance(cell, BaselineCell):
        return BaselineSetting(scale=cell.scale)
    if isinstance(cell, ErrorCell):
        return ErrorSetting(
            scale=cell.scale,
            direction=cell.direction,
            batch=cell.batch,
            heads=cell.heads,
            head_width=cell.head_width,
            dtype=cell.dtype,
            device=cell.device,
        )
    return CostSetting(
        scale=cell.scale if cell.level == "model" else "",
        level=cell.level,
        task=cell.task,
        direction=cell.direction,
        batch=cell.batch,
        heads=cell.heads,
        head_width=cell.head_width,
        dtype=cell.dtype,
        compiled=cell.execution != "eager",
        device=cell.device,
        machine=cell.machine,
        threads=cell.threads,
        torch=cell.torch,
        model=cell.model,
    )


def settings_of(measurements: Sequence[Measurement]) -> list[Setting]:
    """Return the setting of each record; timings by different measuring code have different
    ones."""
    found = [setting_of(one.cell) for one in measurements]
    sides: dict[str, set[Pairs]] = defaultdict(set)
    for one, setting in zip(measurements, found, strict=True):
        if isinstance(setting, CostSetting):
            sides[setting.id].add(measuring(one.cell))
    differing = {id: apart(own) for id, own in sides.items()}
    return [
        msgspec.structs.replace(setting, version=among(measuring(measured(one.record)), features))
        if isinstance(setting, CostSetting) and (features := differing[setting.id])
        else setting
        for one, setting in zip(measurements, found, strict=True)
    ]
