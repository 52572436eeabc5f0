"""Jobs of an [[efficiency]] block: the machine's ceilings, and the cost of calls."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from lra.core import catalogue
from lra.core.cards import GENERATED
from lra.core.catalogue import Target
from lra.core.cells import EfficiencyCell
from lra.core.hashing import value_hash
from lra.core.protocol import ModelSpec
from lra.core.scales import EfficiencyBlock, Scale, load_scale
from lra.core.versions import Versions, declared, of_model, of_timing
from lra.engine.jobs import Job
from lra.engine.plan.axes import timing_points
from lra.engine.plan.peers import Subject, peer_pairs
from lra.engine.plan.planner import Planner, portable_part


def efficiency_jobs(run: Planner, block: EfficiencyBlock, number: int) -> Iterator[Job]:
    """Yield the jobs of a suite's block of that number, short inputs first; where one process
    measures all cells of a mechanism, one mechanism after another."""
    jobs = _by_length(run, block)
    if not block.one_process:
        yield from jobs
        return
    series: dict[str, list[Job]] = defaultdict(list)
    for job in jobs:
        name = _series(job, number)
        series[name].append(msgspec.structs.replace(job, series=name))
    for together in series.values():
        yield from together


def _series(job: Job, number: int) -> str:
    """Name of the cells that may share a process; a compiled cell has its own, since compilers keep
    their results."""
    cell = job.cell
    if not isinstance(cell, EfficiencyCell) or cell.execution == "compiled":
        return ""
    return f"{number} {cell.replicate} {value_hash(cell.mechanism)}"


def _by_length(run: Planner, block: EfficiencyBlock) -> Iterator[Job]:
    subjects, scale = _subjects(run, block), load_scale(block.scale)
    for dtype in block.dtypes if block.ceilings else ():
        if (run.spec.device, dtype) == ("cpu", "float16"):
            # A CPU without units for halves takes a minute for one large product.
            continue
        yield run.ceiling(dtype)
    card = run.card_of(catalogue.find("task", block.task))
    generates = card is not None and card.asks in GENERATED
    for point in timing_points(block, generates=generates):
        task = catalogue.find("task", block.task) if point["level"] == "model" else None
        used = _versions(run, point)
        parts = ["cost", *portable_part(run.spec.device, point["execution"])]
        parts += ["decode"] if point["mode"] == "decode" else []
        if task is not None:
            point |= _model_fields(run, task, scale, causal=point["direction"] == "causal")
            used |= _context_versions(run, task, point["model"], point["mode"], parts)
        # A layer by itself is timed with the paper's hyper-parameters, not with the scale's.
        fitted = scale.mechanisms if point["level"] == "model" else {}
        for target, chosen in subjects:
            settings = {**fitted.get(target.name, {}), **chosen}
            cell = EfficiencyCell(
                scale=scale.name,
                machine=run.machine,
                torch=run.torch,
                threads=run.machine.cores,
                versions=used | run.versions_of(target, *parts),
                mechanism=run.mechanism_for(target, settings),
                device=run.spec.device,
                seconds=block.seconds,
                **point,
            )
            yield run.job(cell, mechanism=target, task=task)


def _subjects(run: Planner, block: EfficiencyBlock) -> list[Subject]:
    """Mechanisms to measure, with the settings that the suite chooses."""
    suite = run.spec.suite
    if not suite.pairs:
        # A layer of a cycle is a layer of one of its mechanisms.
        found = [one for one in run.with_anchors(True, block.beside) if not one.members]
        named = {*block.only, *block.beside}
        return [(target, {}) for target in found if not block.only or target.name in named]
    pairs = peer_pairs(suite, run.mechanisms)
    run.unavailable |= {
        target.name: words
        for target, _ in pairs
        if (words := run.described(target).unavailable) is not None
    }
    return [(catalogue.find("mechanism", name), {}) for name in block.beside] + pairs


def _model_fields(run: Planner, task: Target, scale: Scale, *, causal: bool) -> dict[str, Any]:
    """Fields of a cell of level `model` beside its point on the axes, with the scale's sizes."""
    model = run.model_of(task, scale)
    model = msgspec.structs.replace(model, causal=causal or model.causal)
    sizes = {"heads": model.heads, "head_width": model.qkv_width // model.heads}
    return {"task": task.name, "model": model, **sizes}


def _context_versions(
    run: Planner, task: Target, model: ModelSpec, mode: str, parts: Sequence[str]
) -> Versions:
    """Versions of the code timed around a mechanism; the task's are just the sizes of embedding and
    head, which no field of the cell gives.

    `parts` are those of the mechanism: of the ones in other slots decoding uses them too.
    """
    card = run.card_of(task)
    sizes = () if card is None else (card.vocabulary, card.classes, card.inputs)
    return {
        **declared(of_model(model, inputs=1 if card is None else card.inputs)),
        **run.network_versions(model, lambda *_: parts if mode == "decode" else ()),
        f"sizes/{task.name}": value_hash(sizes),
    }


def _versions(run: Planner, point: Mapping[str, Any]) -> Versions:
    """Versions of the code that times a point on the axes."""
    how = {name: point[name] for name in ("mode", "level", "execution")}
    return declared(of_timing(**how, device=run.spec.device))
