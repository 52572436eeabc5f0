"""Planner: the values shared by all blocks of one run. Never imports torch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET

from lra.core import catalogue
from lra.core.cards import AttentionCard, TaskCard
from lra.core.catalogue import Target
from lra.core.cells import (
    BaselineCell,
    CeilingCell,
    Cell,
    Device,
    Dtype,
    EfficiencyCell,
    ProfileCell,
    QualityCell,
)
from lra.core.errors import UsageError
from lra.core.forms import load_preset
from lra.core.hashing import value_hash
from lra.core.protocol import Mechanism, ModelSpec, Rules, SlotName
from lra.core.scales import QualityBlock, Scale
from lra.core.versions import EDITS, Versions
from lra.engine.jobs import Job
from lra.engine.machine.provenance import library_version
from lra.engine.plan.data import sources_by_task
from lra.engine.plan.describe import Describer
from lra.engine.plan.network import in_body, in_form, slots_of
from lra.engine.plan.settings import Settings
from lra.engine.plan.spec import RunSpec
from lra.engine.plan.versions import (
    data_version,
    measure_hash,
    mechanism_hash,
    mechanism_versions,
    position_version,
)

Named = Mapping[SlotName, str]
"""Names of mechanisms by slot."""
_HOME = Path(__file__).resolve().parents[3]


class Planner:
    """Values shared by the blocks of one run."""

    def __init__(self, spec: RunSpec) -> None:
        self.spec = spec
        self.torch = library_version("torch")
        self.machine = spec.machine(spec.device)
        self.describer = Describer(Path(spec.cache))
        # Sources are read once for a run, however many cells it has.
        self.described = described = cache(self.describer.describe)
        self.hash_of = cache(lambda target, use: mechanism_hash(target, described(target), use))
        self.versions_of = cache(
            lambda target, *parts: mechanism_versions(target, described(target), *parts)
        )
        self._configured: dict[tuple[Target, bytes], Mechanism] = {}
        self._owners = _owners() if spec.edits else {}
        self.settings = Settings(spec.settings)
        self.mechanisms = catalogue.expand("mechanism", spec.mechanisms, cycles=True)
        self.unavailable = find_unavailable(self.mechanisms, self.describer)
        self.tasks = catalogue.expand("task", spec.tasks)

        quality = [task for block in spec.suite.quality for task in self.tasks_of(block)]
        self.sources = sources_by_task(spec.sources, quality)

    def tasks_of(self, block: QualityBlock) -> list[Target]:
        """Return the tasks of a block: those asked for, else its own."""
        return self.tasks or catalogue.expand("task", block.tasks)

    def model_of(
        self, task: Target, scale: Scale, *, preset: str | None = None, slots: Named | None = None
    ) -> ModelSpec:
        """Network for a task, in the body that it needs; preset and slots are those of a suite's
        block, before a person's and after the scale's."""
        asked, settings = self.spec, scale.task(task.name)
        named = asked.slots or slots or settings.slots
        rules = asked.rules or scale.rules

        def chosen(name: str) -> tuple[Mechanism, AttentionCard]:
            target = catalogue.find("mechanism", name)
            found = self.described(target)
            if not isinstance(found.card, AttentionCard):
                raise UsageError(f"mechanism '{name}' is unavailable: {found.unavailable}")
            return self.in_scale(target, scale, rules, task), found.card

        model, form = scale.model_spec(task.name), asked.preset or preset or settings.preset
        published = None if form is None else load_preset(form)
        if published is not None:
            model = in_form(model, published)
        return in_body(
            self.settings.override("model", model),
            self.card_of(task),
            task.name,
            body=asked.body,
            preset=published,
            slots=slots_of(named, chosen),
        )

    def in_scale(self, target: Target, scale: Scale, rules: Rules, task: Target) -> Mechanism:
        """Return a mechanism, or a cycle of them, with the settings that a scale chooses for it."""
        if not target.members:
            return self.mechanism_for(target, scale.settings(target.name, rules, task.name))
        members = [self.in_scale(member, scale, rules, task) for member in target.members]
        return Mechanism(name=target.name, config={one.name: one.config for one in members})

    def card_of(self, task: Target) -> TaskCard | None:
        """Return a task's card; None where it cannot be read."""
        card = self.described(task).card
        return card if isinstance(card, TaskCard) else None

    def with_anchors(self, wanted: bool, beside: Iterable[str]) -> list[Target]:
        """Return the asked-for mechanisms, preceded by those measured beside them."""
        extra = [catalogue.find("mechanism", name) for name in beside] if wanted else []
        return list({target.name: target for target in (*extra, *self.mechanisms)}.values())

    def data_version(self, task: Target) -> Versions:
        """Return the version of a task's data, as the run has it."""
        return data_version(task, real=task.name in self.sources)

    def network_versions(
        self, model: ModelSpec, parts: Callable[[SlotName, Target], Iterable[str]]
    ) -> Versions:
        """Return the versions of what a network names beside the mechanism that is measured:
        positions, and mechanisms of other slots with the `parts` that their slot uses, such as
        `decode`."""
        found = position_version(model.position)
        if model.decoder_position is not UNSET:
            found |= position_version(model.decoder_position)
        for slot, one in ({} if model.slots is UNSET else model.slots).items():
            target = catalogue.find("mechanism", one.name)
            found |= self.versions_of(target, *parts(slot, target))
        return found

    def mechanism_for(self, target: Target, chosen: Mapping[str, Any]) -> Mechanism:
        """Return a mechanism with the settings of the run's files, overridden by a person's."""
        asked = (target, msgspec.json.encode(chosen, order="sorted"))
        if asked not in self._configured:
            config = self.settings.configure(
                target,
                self.described(target),
                asked_for=any(target in (one, *one.members) for one in self.mechanisms),
                scale=chosen,
            )
            self._configured[asked] = Mechanism(name=target.name, config=config)
        return self._configured[asked]

    def ceiling(self, dtype: Dtype, threads: int | None = None) -> Job:
        """Return the job that measures the machine's best rates in a dtype, on all cores or on
        `threads`."""
        cell = CeilingCell(
            machine=self.machine,
            torch=self.torch,
            threads=threads or self.machine.cores,
            versions={"ceiling": measure_hash("ceiling", "measure/ceilings.py")},
            dtype=dtype,
            device=self.spec.device,
        )
        return self.job(cell)

    def job(
        self,
        cell: Cell,
        *,
        mechanism: Target | None = None,
        task: Target | None = None,
    ) -> Job:
        """Return the job of a cell, with the places of the things that the cell names."""
        edits = self._edits_of(mechanism)
        if edits and isinstance(cell, QualityCell | EfficiencyCell | ProfileCell | BaselineCell):
            cell = msgspec.structs.replace(
                cell, versions={**cell.versions, EDITS: value_hash(edits)}
            )
        return Job(
            cell=cell,
            mechanism="" if mechanism is None else mechanism.reference,
            unavailable=self.unavailable.get(mechanism.name, "") if mechanism else "",
            task="" if task is None else task.reference,
            source=None if task is None else self.sources.get(task.name),
            cache=self.spec.cache,
        )

    def _edits_of(self, mechanism: Target | None) -> dict[str, str]:
        """Unchecked edits that a cell may depend on: not those of another mechanism's file."""
        edits = self.spec.edits.items()
        return {file: one for file, one in edits if self._owners.get(file) in (None, mechanism)}


def portable_part(device: Device, execution: str) -> list[str]:
    """Return the part of a mechanism's versions that compilers and GPUs use."""
    return ["portable"] if device == "cuda" or execution == "compiled" else []


def find_unavailable(mechanisms: Iterable[Target], describer: Describer) -> dict[str, str]:
    """Return why mechanisms cannot be imported, by name; each is a row that says so.

    Raises `UsageError` where none can be imported.
    """
    found = {target.name: describer.describe(target).unavailable for target in mechanisms}
    missing = {name: words for name, words in found.items() if words is not None}
    if missing and len(missing) == len(found):
        name, words = next(iter(missing.items()))
        named = words.startswith((f"mechanism '{name}'", f"{name} "))
        raise UsageError(words if named else f"mechanism '{name}' is unavailable: {words}")
    return missing


def _owners() -> dict[str, Target]:
    """Our mechanisms by file, relative to the clone. None imports another."""
    ours = catalogue.expand("mechanism", ["all"])
    return {target.file.relative_to(_HOME).as_posix(): target for target in ours}
