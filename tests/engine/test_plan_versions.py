"""Features whose versions planned cells hold: those that a cell depends on, and no others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lra.core.cells import EfficiencyCell, ProfileCell, QualityCell
from lra.core.protocol import Machine
from lra.core.scales import EfficiencyBlock, QualityBlock, Suite
from lra.engine.plan.spec import RunSpec
from lra.engine.plan.suite import plan_suite

MACHINE = Machine(processor="A", cores=2)
SUITE = Suite(
    name="all", title="All", quality=(QualityBlock(scale="mini", tasks=("bytes", "retrieval")),),
    efficiency=(EfficiencyBlock(scale="mini", lengths=(8,), modes=("train", "decode"), heads=(1,),
                                head_widths=(4,), beside=(), executions=("eager", "compiled")),
                EfficiencyBlock(scale="mini", lengths=(8,), modes=("train",), levels=("model",),
                                task="retrieval", beside=(), heads=(1,), head_widths=(4,))),
)  # fmt: skip
OWN = {"mechanism/sdpa"}
COST = {*OWN, "mechanism/sdpa/cost"}
PORTABLE = {"mechanism/sdpa/portable"}
SEEN = {*OWN, "look", "mechanism/sdpa/oracle"}
MODEL = {"position/learned_from_sinusoid", "train"}
BYTES = {*MODEL, "data/bytes", "train/causal", "train/tokens"}
PAIRS = {*MODEL, "data/retrieval", "train/pairs", "train/tied"}
WHOLE = {"time", "time/model", "time/train", "train/pairs", "sizes/retrieval"}
WHOLE |= {"position/learned_from_sinusoid"}
FAST = {"training.execution": "compiled", "training.precision": "bfloat16"}
DRIVEN = {"train/compiled", "train/bfloat16"}


@pytest.mark.parametrize(
    ("more", "name", "features"),
    [
        ({}, "bytes", {*SEEN, *BYTES, "mechanism/sdpa/decode"}),
        ({}, "retrieval", {*SEEN, *PAIRS}),
        ({"settings": FAST}, "retrieval", {*SEEN, *PAIRS, *DRIVEN, *PORTABLE}),
        ({"device": "cuda"}, "retrieval", {*SEEN, *PAIRS, *PORTABLE, "train/cuda"}),
        ({"rules": "lra2021"}, "retrieval", {*SEEN, *PAIRS, "train/lra2021", "train/last"}),
        ({"profile": True}, "bytes", {*COST, *BYTES, "profile"}),
        ({}, "train eager", {*COST, "time", "time/train"}),
        ({}, "train compiled", {*COST, *PORTABLE, "time", "time/compiled", "time/train"}),
        ({}, "decode eager", {*COST, "mechanism/sdpa/decode", "time", "time/decode"}),
        ({}, "whole model", {*COST, *WHOLE}),
        ({"device": "cuda"}, "train eager", {*COST, *PORTABLE, "time", "time/cuda", "time/train"}),
    ],
)
def test_versions_of(more: dict[str, Any], name: str, features: set[str], cache: Path) -> None:
    given: dict[str, Any] = {"device": "cpu", **more}
    spec = RunSpec(
        suite=SUITE, mechanisms=("sdpa",), machines={"cpu": MACHINE, "cuda": MACHINE},
        cache=str(cache), **given,
    )  # fmt: skip
    found = {_name(job.cell): job.cell.versions for job in plan_suite(spec)}
    assert found[name].keys() == features
    assert {found[name][one] for one in features if not one.startswith("sizes/")} == {1}


def _name(cell: object) -> str:
    match cell:
        case QualityCell() | ProfileCell():
            return cell.data.task
        case EfficiencyCell():
            return "whole model" if cell.level == "model" else f"{cell.mode} {cell.execution}"
    return ""


FULL, SDPA = "mechanism/full", "mechanism/sdpa"


@pytest.mark.parametrize(
    ("task", "slots", "beside"),
    [
        # The source is read, and the answer written, by what stands in the slots for it.
        ("reverse", ("encoder", "decoder"), {"look", f"{FULL}/oracle", f"{FULL}/decode",
                                             f"{SDPA}/decode"}),
        ("reverse", ("cross",), {"look", f"{SDPA}/oracle", f"{SDPA}/decode", f"{FULL}/decode"}),
        ("reverse", ("decoder", "cross"), {"look", f"{SDPA}/oracle", f"{SDPA}/decode"}),
        # Nothing is written where an answer goes on from no other.
        ("lookup", ("encoder", "decoder"), {"look", f"{FULL}/oracle"}),
    ],
)  # fmt: skip
def test_an_encoder_decoder_depends_on_the_parts_that_its_slots_use(
    task: str, slots: tuple[str, ...], beside: set[str], cache: Path
) -> None:
    block = QualityBlock(scale="mini", tasks=(task,))
    spec = RunSpec(
        suite=Suite(name="one", title="One", quality=(block,)), mechanisms=("full",), device="cpu",
        machines={"cpu": MACHINE}, cache=str(cache), baselines=False,
        slots=dict.fromkeys(slots, "sdpa"),
    )  # fmt: skip
    (cell,) = (job.cell for job in plan_suite(spec) if isinstance(job.cell, QualityCell))
    parts = {name for name in cell.versions if name == "look" or name.startswith("mechanism/")}
    assert parts == {FULL, SDPA, *beside}
