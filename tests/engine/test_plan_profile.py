"""Profiles are planned once a mechanism and task, and run as trainings would."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import msgspec
import pytest
from engine_jobs import training

from lra.core.cells import CeilingCell, ProfileCell, QualityCell
from lra.core.errors import UnsupportedError, UsageError
from lra.core.profile_metrics import PARTS, part_metric
from lra.core.protocol import Mechanism
from lra.core.scales import load_suite
from lra.engine.jobs import Job
from lra.engine.plan.spec import RunSpec
from lra.engine.plan.suite import plan_suite
from lra.engine.work import profile
from lra.measure.profile import Profile
from lra.training.setup import Training


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> RunSpec:
    return RunSpec(
        suite=load_suite("certificate"),
        mechanisms=("linear",),
        tasks=("listops", "text"),
        device="cpu",
        profile=True,
        cache=str(tmp_path_factory.mktemp("plan")),
    )


def changed(spec: RunSpec, **changes: object) -> RunSpec:
    return msgspec.structs.replace(spec, **changes)


def profiles(spec: RunSpec) -> list[ProfileCell]:
    return [job.cell for job in plan_suite(spec) if isinstance(job.cell, ProfileCell)]


def test_a_suite_has_one_profile_a_mechanism_and_task_and_the_limit_first(spec: RunSpec) -> None:
    """Shuffled tokens cost what others do, and are no cell of their own."""
    jobs = plan_suite(changed(spec, baselines=True))
    assert [type(job.cell) for job in jobs] == [CeilingCell] + [ProfileCell] * 8
    assert all(job.alone for job in jobs)
    assert Counter(job.label for job in jobs[1:]) == {
        f"profile {name} {task}": 1
        for name in ("sdpa", "identity", "local", "linear")
        for task in ("listops", "text")
    }
    ceiling = jobs[0].cell
    assert {(c.threads, c.machine, c.training.precision) for c in profiles(spec)} == {
        (ceiling.threads, ceiling.machine, ceiling.dtype)  # type: ignore[union-attr]
    }


def test_a_profile_is_of_the_training_that_the_suite_has(spec: RunSpec) -> None:
    settings = {"training.batch": "7", "model.layers": "1"}
    asked = changed(spec, tasks=("listops",), settings=settings)
    (own,) = profiles(asked)
    trained = next(
        job.cell
        for job in plan_suite(changed(asked, profile=False))
        if isinstance(job.cell, QualityCell) and job.cell.mechanism.name == "linear"
    )
    for field in ("scale", "mechanism", "data", "model", "training", "threads", "device"):
        assert getattr(own, field) == getattr(trained, field)
    assert own.versions.keys() - trained.versions.keys() == {"profile", "mechanism/linear/cost"}
    assert trained.versions.keys() - own.versions.keys() == {
        "look",
        "mechanism/linear/oracle",
    }
    assert (own.training.batch, own.model.layers) == (7, 1)


def test_a_type_of_numbers_has_a_limit_of_its_own(spec: RunSpec) -> None:
    jobs = plan_suite(changed(spec, settings={"training.precision": "bfloat16"}))
    assert [job.cell.dtype for job in jobs if isinstance(job.cell, CeilingCell)] == ["bfloat16"]


def test_a_suite_for_other_mechanisms_has_none(spec: RunSpec) -> None:
    (block,) = load_suite("certificate").quality[1:]
    with pytest.raises(UsageError, match="none of these"):
        plan_suite(changed(spec, suite=msgspec.structs.replace(spec.suite, quality=(block,))))


def job(mechanism: str, cache: Path) -> Job:
    """A profile of a training of seconds."""
    made = training("Toy", cache, steps=20)
    shared = ("scale", "machine", "torch", "threads", "versions", "data", "model", "training")
    same = {name: getattr(made.cell, name) for name in shared}
    own = ProfileCell(**same, mechanism=Mechanism(name=mechanism), seconds=0.01)
    reference = made.mechanism if mechanism == "Toy" else ""
    return msgspec.structs.replace(made, cell=own, mechanism=reference)


def test_a_profile_runs_on_the_data_of_its_training(cache: Path) -> None:
    own, phases = job("Toy", cache), []
    found = profile.run(own.cell, own, lambda progress: phases.append(progress.phase))  # type: ignore[arg-type]
    assert found.status == "ok" and found.parameters and found.rows == own.cell.data.rows  # type: ignore[union-attr]
    assert {part_metric(part) for part in PARTS} <= found.metrics.keys()
    assert phases == [
        "data", "build", "warm up", "steps", "parts", "evaluation", "operators", "operations",
    ]  # fmt: skip


@pytest.mark.parametrize(("mechanism", "padded"), [("nystromformer", True), ("linear", False)])
def test_a_profile_is_padded_as_its_training_and_takes_the_time_of_its_cell(
    mechanism: str, padded: bool, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[bool, object]] = []

    def measured(model: object, training: Training, **how: object) -> Profile:
        asked.append((training.pad_to_length, how["seconds"]))
        return Profile({}, {})

    monkeypatch.setattr(profile, "measure_profile", measured)
    own = job(mechanism, cache)
    profile.run(own.cell, own, lambda progress: None)  # type: ignore[arg-type]
    assert asked == [(padded, 0.01)]


def test_what_a_mechanism_cannot_do_is_said_as_of_a_training(cache: Path) -> None:
    own = job("linformer", cache)
    cell = own.cell
    assert isinstance(cell, ProfileCell)
    causal = msgspec.structs.replace(cell, model=cell.model.by_token())
    with pytest.raises(UnsupportedError, match="causal"):
        profile.run(causal, own, lambda progress: None)
