"""Which records take part."""

from __future__ import annotations

import random

import msgspec
import pytest

from lra.core.records import Record
from lra.report.load.select import Evidence, join
from lra.report.load.versions import apart, measuring

from .sample import (
    HERE,
    MODEL,
    THERE,
    TRAINING,
    baseline,
    data,
    edited,
    efficiency,
    mechanism,
    quality,
)

NEWER = "2026-11-21T10:00:00Z"


def _origins(selection: Evidence) -> list[tuple[str, str]]:
    return [(kept.origin, kept.label) for kept in selection.measurements]


def test_reference_rows_of_the_same_protocol_join() -> None:
    selection = join([quality("performer", "text")], [quality("sdpa", "text", machine=THERE)])
    assert _origins(selection) == [("run", "performer"), ("reference", "sdpa")]


@pytest.mark.parametrize(
    "other",
    [
        quality("sdpa", "listops"),
        quality("sdpa", "text", scale="small"),
        quality("sdpa", "text", data_spec=data("text", hash="0" * 20)),
        quality("sdpa", "text", data_spec=data("text", rules="lra2021")),
        quality("sdpa", "text", data_spec=data("text", source="file")),
        quality("sdpa", "text", training=msgspec.structs.replace(TRAINING, steps=301)),
        efficiency("sdpa", 512),
    ],
)
def test_reference_rows_of_another_protocol_are_left_out(other: Record) -> None:
    selection = join([quality("performer", "text")], [other])
    assert _origins(selection) == [("run", "performer")]
    assert selection.unrelated == 1


def test_baselines_of_the_same_data_join_without_a_baseline_in_the_run() -> None:
    reference = [baseline("text"), baseline("listops")]
    selection = join([quality("performer", "text")], reference)
    assert _origins(selection) == [("run", "performer"), ("reference", "")]


@pytest.mark.parametrize(
    ("other", "joins"),
    [
        (efficiency("sdpa", 512, machine=THERE), True),
        (efficiency("sdpa", 1024), False),
        (efficiency("sdpa", 512, "train"), False),
        (efficiency("sdpa", 512, dtype="bfloat16"), False),
        (efficiency("sdpa", 512, batch=8), False),
        (efficiency("sdpa", 512, heads=8), False),
        (efficiency("sdpa", 512, level="attention"), False),
        (efficiency("sdpa", 512, direction="causal"), False),
        (efficiency("sdpa", 512, model=MODEL), False),
    ],
)
def test_timings_join_only_at_equal_sizes(other: Record, joins: bool) -> None:
    selection = join([efficiency("performer", 512)], [other])
    assert len(selection.measurements) == 1 + joins


def test_timings_of_other_models_are_no_answers_to_the_same_question() -> None:
    """`--set model.layers` times another model."""
    whole = {"level": "model", "task": "text"}
    deep = msgspec.structs.replace(MODEL, layers=8)
    records = [
        efficiency("sdpa", 512, "train", model=MODEL, **whole),
        efficiency("sdpa", 512, "train", model=deep, measure=2, started=NEWER, **whole),
    ]
    assert len(join(records, []).measurements) == 2
    assert join(records[:1], records[1:]).unrelated == 1


def test_the_newest_record_of_a_question_wins_whatever_the_order() -> None:
    old = quality("performer", "text", 0.6)
    new = quality(edited("performer"), "text", 0.8, started=NEWER)
    for records in ([old, new], [new, old]):
        selection = join(records, [])
        assert [kept.record for kept in selection.measurements] == [new]
        assert selection.superseded == 1


def test_seeds_of_older_sources_do_not_mix_with_newer_ones() -> None:
    old = [quality("performer", "text", seed=seed) for seed in (0, 1)]
    new = quality(edited("performer"), "text", seed=0, started=NEWER)
    assert [kept.record for kept in join([*old, new], []).measurements] == [new]


def test_seeds_measured_by_an_older_trainer_do_not_mix_either() -> None:
    old = [quality("performer", "text", seed=seed) for seed in (0, 1)]
    new = quality("performer", "text", seed=1, measure=2, started=NEWER)
    assert [kept.record for kept in join([*old, new], []).measurements] == [new]


def test_lengths_of_older_sources_do_not_mix_into_a_row() -> None:
    old = [efficiency("performer", length) for length in (512, 1024)]
    new = efficiency(edited("performer"), 512, started=NEWER)
    assert [kept.record for kept in join([*old, new], []).measurements] == [new]


def _versions(record: Record, started: str = NEWER, **versions: int | str) -> Record:
    """The same, of other versions of some features."""
    named = {name.replace("_", "/"): version for name, version in versions.items()}
    cell = msgspec.structs.replace(record.cell, versions={**record.cell.versions, **named})
    return msgspec.structs.replace(record, id=cell.id, cell=cell, started_at=started)


def test_a_newer_version_of_one_mode_leaves_the_others_in_their_row() -> None:
    old = [efficiency("a", n, mode) for n in (512, 1024) for mode in ("forward", "train")]
    new = _versions(efficiency("a", 512, "train"), time_train=2)
    kept = [one.record for one in join([*old, new], []).measurements]
    assert new in kept and len(kept) == 3
    assert {r.cell.mode for r in kept if r is not new} == {"forward"}


def test_a_row_is_never_of_two_protocols_of_which_none_can_be_held_against_the_other() -> None:
    earlier = [efficiency("a", length) for length in (512, 1024)]
    hashes = {"earlier/measuring": "0" * 20, "earlier/mechanism": "1" * 20}
    cells = [msgspec.structs.replace(one.cell, versions=hashes) for one in earlier]
    earlier = [
        msgspec.structs.replace(one, id=cell.id, cell=cell)
        for one, cell in zip(earlier, cells, strict=True)
    ]
    new = efficiency("a", 512, started=NEWER)
    assert [one.record for one in join([*earlier, new], []).measurements] == [new]
    assert {one.record.id for one in join(earlier, []).measurements} == {one.id for one in earlier}


def test_data_of_another_version_join_no_reference() -> None:
    run = quality("performer", "text")
    same, other = quality("sdpa", "text"), _versions(quality("sdpa", "text"), data_text=2)
    assert len(join([run], [same, baseline("text")]).measurements) == 3
    selection = join([run], [other, _versions(baseline("text"), data_text=2)])
    assert len(selection.measurements) == 1 and selection.unrelated == 2


def test_a_record_that_is_both_run_and_reference_counts_once() -> None:
    record = quality("performer", "text")
    assert _origins(join([record], [record])) == [("run", "performer")]


def test_a_remeasured_reference_stays_for_its_ratios() -> None:
    """The same cell in the run and in the reference is two measurements, each its own origin's."""
    run, reference = (
        efficiency("sdpa", 512),
        efficiency("sdpa", 512, started="2026-11-01T00:00:00Z"),
    )
    assert run.id == reference.id
    assert _origins(join([run], [reference])) == [("run", "sdpa"), ("reference", "sdpa")]


def test_configurations_of_one_mechanism_are_told_apart_by_what_differs() -> None:
    few, many = (mechanism("performer", features=f, kernel="softmax") for f in (64, 256))
    selection = join([quality(few, "text"), quality(many, "text")], [])
    labels = [kept.label for kept in selection.measurements]
    assert labels == ["performer (features=256)", "performer (features=64)"]


def test_machine_classes_pool_for_quality_by_seed() -> None:
    records = [
        quality("performer", "text", 0.7, machine=HERE),
        quality("performer", "text", 0.8, machine=THERE, started=NEWER),
    ]
    assert [kept.record for kept in join(records, []).measurements] == [records[1]]


def test_any_order_gives_the_same_selection() -> None:
    run = [quality(n, t, seed=s) for n in ("a", "b") for t in ("text", "image") for s in (0, 1)]
    reference = [quality("sdpa", "text"), baseline("image")]
    expected = join(run, reference)
    for seed in range(5):
        random.Random(seed).shuffle(run)
        assert join(run, reference[::-1]) == expected


def test_two_scales_with_one_training_are_two_protocols() -> None:
    selection = join([quality("a", "text"), quality("a", "text", scale="small")], [])
    assert selection.figures["protocol"].nunique() == 2


def test_unchecked_edits_stand_apart_from_code_without() -> None:
    before = [quality("performer", "text", 0.5, seed=seed) for seed in (0, 1, 2)]
    after = quality("performer", "text", 0.9, seed=0, started=NEWER)
    cell = msgspec.structs.replace(after.cell, versions={**after.cell.versions, "edits": "e1"})
    edited_one = msgspec.structs.replace(after, cell=cell, id=cell.id)
    assert [one.record for one in join([*before, edited_one], []).measurements] == [edited_one]
    assert apart([measuring(one.cell) for one in (before[0], edited_one)]) == ["edits"]
