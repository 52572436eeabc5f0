"""Jobs of a [[quality]] block: simple baselines of each task, then trainings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec
from msgspec import UNSET

from lra.core import catalogue
from lra.core.cards import AttentionCard, TaskCard, TaskMetric
from lra.core.catalogue import CONTROLS, EXACT, Target
from lra.core.cells import BaselineCell, QualityCell
from lra.core.errors import UsageError
from lra.core.hashing import value_hash
from lra.core.protocol import SLOTS, DataSpec, ModelSpec, Rules, SlotName, TrainSpec
from lra.core.scales import QualityBlock, Scale, load_scale
from lra.core.versions import Versions, declared, of_training
from lra.engine.jobs import Job
from lra.engine.plan.data import data_spec, refuse_misspelled_tasks
from lra.engine.plan.describe import Card
from lra.engine.plan.devices import refuse_devices
from lra.engine.plan.planner import Planner, portable_part
from lra.engine.plan.versions import measure_hash
from tasks.sources.data_hash import answers_hash

_SCORED = ("measure/baselines.py", "measure/baselines_by_token.py")


def quality_jobs(run: Planner, block: QualityBlock) -> Iterator[Job]:
    """Yield the jobs of a block; baselines keep the given order of tokens even where trainings have
    another."""
    scale = _load_scale(run.spec.scale or block.scale)
    tasks = run.tasks_of(block)
    refuse_misspelled_tasks(scale, tasks)
    spec, devices = run.spec, run.spec.devices
    refuse_devices(devices, spec.device, spec.machine("cpu"), block.threads)
    if block.order != "given":
        _refuse_answers_at_tokens(run, tasks, block.order)
    data = _data(run, scale, tasks)
    scored = measure_hash("baseline", *_SCORED)
    for task in tasks:
        cell = BaselineCell(
            scale=scale.name,
            machine=run.spec.machine("cpu"),
            torch=run.torch,
            threads=block.threads,
            # A baseline's record has the scores of the task's own rules, which are no part of its
            # data.
            versions={
                "baseline": value_hash([scored, answers_hash(task.file)]),
                **run.data_version(task),
            },
            data=data[task.name],
        )
        yield run.job(cell, task=task)
    if block.order != "given":
        data = {name: msgspec.structs.replace(s, order=block.order) for name, s in data.items()}
    for target, task, first in _first_trainings(run, block, scale, data):
        rates = _rates(run, scale, first.data.rules)
        peak = first.training.learning_rate
        for seed in range(run.spec.seeds or block.seeds):
            for rate in rates:
                training = msgspec.structs.replace(first.training, learning_rate=rate * peak)
                own = msgspec.structs.replace(first, training=training, seed=seed)
                job = run.job(own, mechanism=target, task=task)
                yield msgspec.structs.replace(job, devices=devices)


def first_trainings(
    run: Planner, block: QualityBlock
) -> Iterator[tuple[Target, Target, QualityCell]]:
    """Yield mechanism, task and the first seed of each training of a block, at the task's own rate
    and in the given order of tokens."""
    scale = _load_scale(run.spec.scale or block.scale)
    yield from _first_trainings(run, block, scale, _data(run, scale, run.tasks_of(block)))


def _first_trainings(
    run: Planner, block: QualityBlock, scale: Scale, data: Mapping[str, DataSpec]
) -> Iterator[tuple[Target, Target, QualityCell]]:
    for name in block.only:
        catalogue.find("mechanism", name)
    for target in run.with_anchors(run.spec.baselines, (EXACT, *CONTROLS)):
        if block.only and target.name not in block.only:
            continue
        for task in run.tasks_of(block):
            yield target, task, _first(run, scale, block, target, task, data[task.name])


def _data(run: Planner, scale: Scale, tasks: Iterable[Target]) -> dict[str, DataSpec]:
    return {
        task.name: data_spec(task, scale, run.describer, run.sources.get(task.name), run.spec.rules)
        for task in tasks
    }


def _first(
    run: Planner, scale: Scale, block: QualityBlock, target: Target, task: Target, data: DataSpec
) -> QualityCell:
    """First seed of a training, at the task's own rate."""
    model = run.model_of(task, scale, preset=block.preset, slots=block.slots)
    _refuse_lost_answers(run, task, model)
    training = scale.train_spec(task.name)
    if data.rules == "lra2021":
        # As in the original; and on Text the best by validation would be chosen by test.
        training = msgspec.structs.replace(training, tested="last")
    training = run.settings.override("training", training)
    return QualityCell(
        scale=scale.name,
        machine=run.machine,
        torch=run.torch,
        threads=block.threads,
        versions=_versions(run, target, task, data, model, training),
        mechanism=run.in_scale(target, scale, data.rules, task),
        data=data,
        model=model,
        training=training,
        metric=_metric(run, task),
        track=run.spec.track,
        device=run.spec.device,
    )


def _versions(
    run: Planner,
    target: Target,
    task: Target,
    data: DataSpec,
    model: ModelSpec,
    training: TrainSpec,
) -> Versions:
    """Versions of all code that a training uses."""
    card = run.card_of(task)
    used = of_training(
        model,
        training,
        rules=data.rules,
        inputs=1 if card is None else card.inputs,
        device=run.spec.device,
    )
    named = {} if model.slots is UNSET else model.slots
    reader = catalogue.find("mechanism", named["cross"].name) if "cross" in named else target
    looks = _is_convex(run.described(reader).card)

    def parts(slot: SlotName, mechanism: Target) -> list[str]:
        beside = _parts_beside(run.described(mechanism).card, slot, model, card)
        return portable_part(run.spec.device, training.execution) + beside

    used += ["look"] * looks + ["data/shuffled"] * (data.order == "shuffled")
    own = {part for slot in SLOTS if slot not in named for part in parts(slot, target)}
    return {
        **declared(used),
        **run.network_versions(model, parts),
        **run.versions_of(target, *sorted(own)),
        **run.data_version(task),
    }


def _parts_beside(
    mechanism: Card | None, slot: SlotName, model: ModelSpec, task: TaskCard | None
) -> list[str]:
    """Parts of a mechanism in a slot that a training's record uses beside the training: the oracle
    for the trained attention, and decoding for what the model does token by token. In a stack of
    its own a mechanism fills all slots."""
    if not isinstance(mechanism, AttentionCard):
        return []
    found = ["oracle"] if slot == "cross" and _is_convex(mechanism) else []
    can, is_pair = mechanism.capabilities, model.body == "encoder_decoder"
    if is_pair:
        decodes = task is not None and task.answers_first is not None
    else:
        decodes = model.pooling == "none"
    steps = (slot == "decoder" and can.decode != "none") or (
        slot == "cross" and is_pair and can.cross_decode != "none"
    )
    return found + ["decode"] * (decodes and steps)


def _is_convex(mechanism: Card | None) -> bool:
    return isinstance(mechanism, AttentionCard) and mechanism.weights == "convex"


def _rates(run: Planner, scale: Scale, rules: Rules) -> tuple[float, ...]:
    """Multiples of a task's learning rate to try."""
    if run.spec.track == "matched":
        return (1.0,)
    if rules == "lra2021":
        raise UsageError(
            "the tuned track chooses by validation, which under the rules lra2021 is the test "
            "split of text; say --rules fixed, or leave --track tuned out"
        )
    if not scale.rates:
        raise UsageError(
            f"scale '{scale.name}' has no learning rates to try; add e.g. "
            "rates = [0.3, 1.0, 3.0], or leave --track tuned out"
        )
    return scale.rates


def _metric(run: Planner, task: Target) -> TaskMetric:
    card = run.card_of(task)
    return card.metric if card is not None else "accuracy"


def _refuse_answers_at_tokens(run: Planner, tasks: Iterable[Target], order: str) -> None:
    for task in tasks:
        card = run.card_of(task)
        if card is not None and card.asks != "example":
            raise UsageError(
                f"task '{task.name}' asks for each token, and answers are lost in the order "
                f"{order}; leave it out of that block"
            )


def _refuse_lost_answers(run: Planner, task: Target, model: ModelSpec) -> None:
    card = run.card_of(task)
    if card is not None and card.asks == "example" and model.pooling == "none":
        raise UsageError(
            f"task '{task.name}' asks for one answer per example, and a model that pools nothing "
            "answers at each token; choose pooling mean, cls or first"
        )


def _load_scale(reference: str) -> Scale:
    """Read a scale and refuse settings of a mechanism that does not exist."""
    scale = load_scale(reference)
    by_task = [name for task in scale.tasks.values() for name in task.lra2021]
    for name in (*scale.mechanisms, *scale.lra2021, *by_task):
        catalogue.find("mechanism", name)
    return scale
