"""What an [[efficiency]] block consists of: what the machine can do at best, what calls cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from lra.core import catalogue
from lra.core.catalogue import Target
from lra.core.cells import EfficiencyCell
from lra.core.scales import EfficiencyBlock, Scale, load_scale
from lra.engine.jobs import Job
from lra.engine.plan_axes import timed
from lra.engine.plan_pairs import Subject, paired
from lra.engine.planning import Planning
from lra.engine.sources import measure_hash

_TIMED = "measure/efficiency.py"


def efficiency_jobs(run: Planning, block: EfficiencyBlock) -> Iterator[Job]:
    """Yield the jobs of a block, short inputs first."""
    subjects, scale = _subjects(run, block), load_scale(block.scale)
    for dtype in block.dtypes if block.ceilings else ():
        if (run.spec.device, dtype) == ("cpu", "float16"):
            # Where it has no units for halves one large product takes a minute.
            continue
        yield run.ceiling(dtype)
    for point in timed(block):
        task = catalogue.find("task", block.task) if point["level"] == "model" else None
        point["measure_hash"] = measure_hash("efficiency", _TIMED)
        if task is not None:
            point |= _whole(run, task, scale, causal=point["direction"] == "causal")
        # A layer by itself is timed with the paper's hyper-parameters, not with the scale's.
        fitted = scale.mechanisms if point["level"] == "model" else {}
        for target, chosen in subjects:
            settings = {**fitted.get(target.name, {}), **chosen}
            cell = EfficiencyCell(
                scale=scale.name,
                machine=run.machine,
                torch=run.torch,
                threads=run.machine.cores,
                mechanism=run.configured("efficiency", target, settings),
                declared_hash=_declared_hash(run, target, point),
                device=run.spec.device,
                seconds=block.seconds,
                **point,
            )
            yield run.job(cell, mechanism=target, task=task)


def _subjects(run: Planning, block: EfficiencyBlock) -> list[Subject]:
    """What is measured, with the settings that the suite chooses."""
    suite = run.spec.suite
    if not suite.pairs:
        return [(target, {}) for target in run.beside(True, block.beside)]
    pairs = paired(suite, run.mechanisms)
    run.unavailable |= {
        target.name: words
        for target, _ in pairs
        if (words := run.described(target).unavailable) is not None
    }
    return [(catalogue.find("mechanism", name), {}) for name in block.beside] + pairs


def _whole(run: Planning, task: Target, scale: Scale, *, causal: bool) -> dict[str, Any]:
    """What a cell of level `model` says beside its point on the axes; sizes are the scale's."""
    model = run.model_of(task, scale)
    model = msgspec.structs.replace(model, causal=causal or model.causal)
    card = run.card_of(task)
    found = measure_hash(
        "efficiency",
        _TIMED,
        outside=(catalogue.find("position", model.position).file,),
        # No more of its task is timed than the sizes of embedding and head.
        values=(card.vocabulary, card.classes, card.inputs) if card is not None else (),
    )
    sizes = {"heads": model.heads, "head_width": model.qkv_width // model.heads}
    return {"task": task.name, "model": model, "measure_hash": found, **sizes}


def _declared_hash(run: Planning, target: Target, point: Mapping[str, Any]) -> str:
    """The hash of what a cell's record repeats of the operations that a mechanism declares."""
    if (point["level"], point["mode"]) != ("layer", "forward"):
        return ""
    return run.hash_of(target, "operations")
