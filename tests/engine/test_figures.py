"""Figures that a check keeps of records: seeds together, endings, and only repeatable ones."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import msgspec
import pytest

from lra.core.cells import Cell, EfficiencyCell, ErrorCell, QualityCell, VerifyCell
from lra.core.findings import Case, Finding
from lra.core.protocol import DataSpec, Machine, Mechanism, ModelSpec, Rows, TrainSpec
from lra.core.records import CurvePoint, Metric, Record
from lra.engine.gate.figures import figures
from lra.verdict.baseline import Figures, judge

COMMON: dict[str, Any] = {
    "machine": Machine(processor="Example CPU", cores=2),
    "torch": "2.13.0",
    "threads": 1,
    "versions": {},
}
LINEAR = Mechanism(name="linear", config={"map": "elu"})


def record(cell: Cell, **own: Any) -> Record:
    return Record(
        **{
            "id": cell.id, "cell": cell, "status": "ok", "seconds": 1.0,
            "started_at": "2026-11-20T10:00:00Z", **own,
        }
    )  # fmt: skip


def timing(mechanism: Mechanism = LINEAR, **own: Any) -> EfficiencyCell:
    asked = {"scale": "mini", "length": 256, "mode": "train", "heads": 4, "head_width": 64}
    return EfficiencyCell(**{**COMMON, "mechanism": mechanism, **asked, **own})


def training(scale: str = "check", **own: Any) -> QualityCell:
    return QualityCell(
        **{
            **COMMON, "mechanism": LINEAR, "scale": scale,
            "data": DataSpec(task="image", hash="d", length=100,
                             rows=Rows(train=8, validation=8, test=8)),
            "model": ModelSpec(layers=1, width=8, qkv_width=8, heads=2, mlp_width=8),
            "training": TrainSpec(steps=2, batch=2, learning_rate=1e-3, evaluate_every=1),
            **own,
        }
    )  # fmt: skip


def trained(cell: QualityCell, accuracy: float | None, **own: Any) -> Record:
    points = tuple(
        CurvePoint(
            step=n, seconds=1.0, train_loss=2.0 / n, validation_loss=2.5 / n,
            validation_accuracy=0.5, learning_rate=1e-3,
        )
        for n in (1, 2)
    )  # fmt: skip
    metrics = {"test_accuracy": Metric(value=accuracy, unit="share", better="higher")}
    return record(cell, **{"metrics": metrics, "curve": points, "parameters": 77, **own})


def alone(one: Record) -> Figures:
    ((cell,),) = (own.values() for own in figures([one]).values())
    return cell


def test_counts_are_kept_and_what_varies_is_not() -> None:
    metrics = {
        "latency": Metric(value=1e-3, unit="s"),
        "peak_resident_bytes": Metric(value=9e6, unit="B"),
        "peak_tensor_bytes": Metric(value=4096.0, unit="B"),
        "peak_allocated_bytes": Metric(value=None, unit="B", why_null="no GPU"),
        "operations": Metric(value=12.0, unit="count"),
    }
    own = alone(record(timing(), metrics=metrics, parameters=5))
    assert own.counts == {"parameters": 5, "peak_tensor_bytes": 4096.0, "operations": 12.0}
    assert (own.losses, own.accuracies, own.laws, own.status) == ([], {}, {}, "ok")


@pytest.mark.parametrize(
    "name", ["peak_tensor_bytes", "peak_allocated_bytes", "operations", "state_bytes"]
)
def test_each_metric_that_is_the_same_twice_is_kept(name: str) -> None:
    own = alone(record(timing(), metrics={name: Metric(value=4096.0, unit="B")}))
    assert own.counts == {name: 4096.0}


def test_a_short_training_keeps_its_losses_and_not_its_accuracy() -> None:
    own = alone(trained(training(), 0.4))
    assert own.losses == [2.0, 2.5, 1.0, 1.25]
    assert own.accuracies == {} and own.counts == {"parameters": 77}


def test_seeds_of_one_training_are_one_cell() -> None:
    cells = [training("mini", seed=seed) for seed in (0, 1, 2)]
    accuracies = (0.5, 0.6, None)
    records = [trained(c, a) for c, a in zip(cells, accuracies, strict=True)]
    found = figures(records)
    assert list(found["linear"]) == ["image, scale mini"]
    own = found["linear"]["image, scale mini"]
    assert own.accuracies == {"0": 0.5, "1": 0.6} and own.losses == [] and own.status == "ok"
    for bad in range(3):
        ended = [
            msgspec.structs.replace(one, status="diverged" if n == bad else "ok")
            for n, one in enumerate(records)
        ]
        own = figures(ended)["linear"]["image, scale mini"]
        assert own.status == "diverged", "it ended as the worst of its seeds"


@pytest.mark.parametrize("statuses", [*permutations(("ok", "unsupported", "crash"))])
def test_seeds_that_ended_in_several_ways_ended_as_the_worst_of_them(
    statuses: tuple[str, ...],
) -> None:
    cells = [training("mini", seed=seed) for seed in range(3)]
    ended = [trained(c, 0.5, status=status) for c, status in zip(cells, statuses, strict=True)]
    own = figures(ended)["linear"]["image, scale mini"]
    assert own.status == "crash"
    untried = [one for one in ended if one.status != "crash"]
    assert figures(untried)["linear"]["image, scale mini"].status == "unsupported"


def test_trainings_that_differ_in_more_than_their_seed_are_other_cells() -> None:
    plain = training("mini")
    shuffled = msgspec.structs.replace(plain.data, order="shuffled", rules="lra2021")
    rates = [msgspec.structs.replace(plain.training, learning_rate=rate) for rate in (1e-3, 3e-3)]
    cells = [plain, training("mini", data=shuffled)]
    cells += [training("mini", training=tried, track="tuned") for tried in rates]
    found = figures(trained(cell, 0.5) for cell in cells)
    assert sorted(found["linear"]) == [
        "image, scale mini",
        "image, scale mini, lra2021, shuffled",
        "image, scale mini, rate 0.001",
        "image, scale mini, rate 0.003",
    ]


@pytest.mark.parametrize(
    "other",
    [
        {"batch": 4}, {"heads": 8}, {"head_width": 32}, {"dtype": "bfloat16"}, {"scale": "small"},
        {"execution": "compiled"}, {"level": "attention"}, {"task": "image", "level": "model"},
        {"direction": "causal"}, {"seconds": 2.0}, {"threads": 2}, {"replicate": 1},
        {"mechanism": Mechanism(name="linear", config={"map": "relu"})},
    ],
    ids=str,
)  # fmt: skip
def test_calls_that_differ_in_any_way_are_two_cells_with_their_own_counts(
    other: dict[str, Any],
) -> None:
    sizes = {"peak_tensor_bytes": Metric(value=1.0, unit="B")}
    larger = {"peak_tensor_bytes": Metric(value=2.0, unit="B")}
    records = [record(timing(), metrics=sizes), record(timing(**other), metrics=larger)]
    found = [own.counts["peak_tensor_bytes"] for own in figures(records)["linear"].values()]
    assert sorted(found) == [1.0, 2.0]
    assert figures(reversed(records)) == figures(records)


def test_checks_of_other_laws_are_other_cells() -> None:
    asked: list[dict[str, Any]] = [{}, {"form": "full"}, {"laws": ("causality", "masks")}]
    asked.append({"laws": ("causality",), "case": Case(n=5, causal=True)})
    found = figures(record(VerifyCell(**COMMON, mechanism=LINEAR, **own)) for own in asked)
    assert set(found["linear"]) == {
        "laws", "laws full", "laws causality masks", "laws causality n=5 causal",
    }  # fmt: skip


def test_rates_that_are_nearly_alike_are_other_cells() -> None:
    rates = [
        msgspec.structs.replace(training().training, learning_rate=rate)
        for rate in (1e-3, 1.00000001e-3)
    ]
    cells = [training("mini", training=tried, track="tuned") for tried in rates]
    assert len(figures(trained(cell, 0.5) for cell in cells)["linear"]) == 2


def test_bits_per_byte_are_no_accuracy() -> None:
    bits = {"bits_per_byte": Metric(value=1.9, unit="bit", better="lower")}
    own = alone(record(training("mini", metric="bits_per_byte"), metrics=bits))
    assert (own.status, own.accuracies) == ("ok", {})


def test_laws_are_kept_by_name() -> None:
    findings = (Finding(law="causality", verdict="held"), Finding(law="masks", verdict="failed"))
    found = figures([record(VerifyCell(**COMMON, mechanism=LINEAR), findings=findings)])
    assert found["linear"]["laws"].laws == {"causality": "held", "masks": "failed"}


@pytest.mark.parametrize("status", ["oom", "unsupported", "skipped"])
def test_of_what_did_not_end_well_only_the_ending_is_kept(status: str) -> None:
    own = alone(record(timing(), status=status, parameters=5))
    assert (own.status, own.counts) == (status, {})
    own = alone(trained(training(), 0.4, status=status))
    assert (own.status, own.losses, own.counts) == (status, [], {})


def test_a_loss_is_compared_whatever_was_edited() -> None:
    """A trainer whose losses change is a regression, also where its version was raised."""
    before, after = (training(versions={"train": n}) for n in (1, 2))
    curve = trained(after, 0.4).curve
    worse = tuple(msgspec.structs.replace(point, train_loss=99.0) for point in curve)
    found = judge(
        "linear",
        figures([trained(before, 0.4)])["linear"],
        figures([trained(after, 0.4, curve=worse)])["linear"],
    )
    assert {one.figure: one.outcome for one in found}["losses"] == "regression"


def test_mechanisms_and_cells_are_sorted_and_other_cells_are_left_out() -> None:
    other = Mechanism(name="full")
    error = ErrorCell(**COMMON, mechanism=LINEAR, scale="mini", length=8, heads=1, head_width=8)
    found = figures(
        record(cell) for cell in (timing(length=512), timing(mode="forward"), error, timing(other))
    )
    assert [(name, list(own)) for name, own in found.items()] == [
        ("full", ["train 256 bidirectional"]),
        ("linear", ["forward 256 bidirectional", "train 512 bidirectional"]),
    ]


def test_what_was_asked_is_another_with_anything_but_versions_and_seeds() -> None:
    def asked(cell: Cell, **own: Any) -> str:
        return alone(trained(cell, 0.5) if isinstance(cell, QualityCell) else record(cell)).asked

    alike = [
        timing(),
        timing(versions={"time": 2, "mechanism/linear": "edited"}),
    ]
    assert len({asked(cell) for cell in alike}) == 1
    assert asked(training(seed=0)) == asked(training(seed=1))
    others = [
        timing(msgspec.structs.replace(LINEAR, config={"map": "relu"})),
        timing(torch="2.14.0"),
        timing(machine=Machine(processor="Other CPU", cores=2)),
        timing(heads=8),
        timing(threads=2),
        training(torch="2.14.0"),
    ]
    assert len({asked(cell) for cell in (alike[0], training(), *others)}) == len(others) + 2
