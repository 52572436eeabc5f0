"""What trained attention reads: distances by mechanism and task, and pictures of rollouts."""

import msgspec
import numpy as np
import pytest
from lra.report.mechanisms.attended import attended_section
from lra.report.select import join

from lra.core.trained_attention import TrainedAttention, pack_rollout
from lra.report.assemble import assemble
from tests.report import sample

SIDE = 6


def looked(
    name, distances, task="text", *, rollouts=(), seed=0, examples=64, track="matched", **changes
):
    """A training whose attention was looked at."""
    scale = changes.pop("scale", "mini")
    spec = sample.data(task, **{"length": 100, **changes})
    record = sample.quality(name, task, 0.8, data_spec=spec, seed=seed, scale=scale)
    cell = msgspec.structs.replace(record.cell, track=track)
    attended = TrainedAttention(examples=examples, distances=distances, rollouts=rollouts)
    return msgspec.structs.replace(record, id=cell.id, cell=cell, attended=attended)


def rollout(answer):
    draws = np.random.default_rng(answer)
    pixels = draws.integers(0, 256, (SIDE, SIDE))
    return pack_rollout(pixels, draws.random((SIDE, SIDE)), label=1, answer=answer)


def lines(section):
    (table,) = section.tables
    return {line.label: [(cell.text, cell.note) for cell in line.cells] for line in table.rows}


def test_a_distance_is_the_mean_over_layers_heads_and_seeds():
    records = [
        looked("sdpa", ((10.0, 20.0), (30.0, 40.0))),
        looked("sdpa", ((15.0, 15.0), (15.0, 15.0)), seed=1),
        looked("linear", ((8.0,),), "listops"),
    ]
    section = attended_section(join(records, []))
    assert section.tables[0].columns == ("listops", "text")
    found = lines(section)
    assert found["sdpa"][1] == ("20.0", "20.0 %, n 64")
    assert found["linear"] == [("8.00", "8.0 %, n 64"), ("n/a", "")]


def test_a_cell_says_how_many_sequences_were_looked_at():
    section = attended_section(
        join(
            [
                looked("sdpa", ((20.0,),), examples=16),
                looked("sdpa", ((20.0,),), examples=20, seed=1),
                looked("linear", ((8.0,),), examples=64),
            ],
            [],
        )
    )
    assert lines(section) == {
        "linear": [("8.00", "8.0 %, n 64")],
        "sdpa": [("20.0", "20.0 %, n 16 to 20")],
    }
    notes = " ".join(section.tables[0].notes)
    assert "half a minute" in notes and "2^28" in notes


def test_a_look_that_failed_is_told_from_a_mechanism_that_has_no_weights():
    def failed(name, seed=0):
        one = looked(name, ((9.0,),), seed=seed)
        return msgspec.structs.replace(one, attended=None, method={"look_failed": "MemoryError"})

    partly = [looked("sdpa", ((9.0,),)), failed("sdpa", seed=1)]
    section = attended_section(
        join([*partly, failed("linear"), sample.quality("lstm", "text")], [])
    )
    assert lines(section) == {
        "linear": [("failed", "")],
        "sdpa": [("9.00", "9.0 %, n 64, 1 failed")],
    }
    assert "failed: the error stands below the answer." in section.tables[0].notes
    assert lines(attended_section(join([failed("sdpa")], []))) == {"sdpa": [("failed", "")]}


def test_scales_sources_rules_and_tracks_have_a_table_each():
    kinds = [{}, {"scale": "small"}, {"source": "file"}, {"rules": "lra2021"}, {"track": "tuned"}]
    records = [looked("sdpa", ((9.0 + n,),), **kind) for n, kind in enumerate(kinds)]
    section = attended_section(join(records, []))
    start = "Mean attention distance in tokens at scale "
    assert {
        t.title.removeprefix(start): (t.columns, t.rows[0].cells[0].text) for t in section.tables
    } == {
        "mini": (("text",), "9.00"),
        "small": (("text",), "10.0"),
        "mini, data from files": (("text",), "11.0"),
        "mini, lra2021 rules": (("text",), "12.0"),
        "mini, tuned track": (("text",), "13.0"),
    }
    assert len({table.id for table in section.tables}) == 5


def test_a_reference_is_marked_and_no_mean_is_over_both():
    others = [looked("sdpa", ((30.0,),), seed=seed) for seed in (1, 2)]
    section = attended_section(join([looked("sdpa", ((10.0,),))], others))
    (table,) = section.tables
    assert [(line.title, line.cells[0].text) for line in table.rows] == [
        ("sdpa", "10.0"),
        ("sdpa (reference)", "30.0"),
    ]


@pytest.mark.parametrize(
    ("length", "there"), [(999, "n/a"), (1000, "about 750"), (4000, "about 750"), (4001, "n/a")]
)
def test_published_distances_stand_below_lengths_like_theirs_alone(length, there):
    records = [looked("sdpa", ((9.0,),), "listops", length=length)]
    # Pathfinder's, which is always shown.
    records.append(looked("sdpa", ((9.0,),), "pathfinder", length=1024))
    section = attended_section(join(records, []))
    cells = lines(section)["LRA: Transformer"]
    assert [text for text, _ in cells] == [there, "about 550"]
    assert cells[1][1] == "of 1,024"


def test_where_no_length_is_like_theirs_nothing_published_is_shown():
    section = attended_section(join([looked("sdpa", ((9.0,),), "listops", length=24)], []))
    assert "LRA: Transformer" not in lines(section)
    assert not any("LRA" in note for note in section.tables[0].notes)


@pytest.mark.parametrize(
    "records",
    [[sample.quality("sdpa", "text")], [looked("sdpa", ((9.0,),), order="shuffled")]],
)
def test_what_was_not_looked_at_or_is_in_no_order_has_no_section(records):
    assert attended_section(join(records, [])) is None


def test_rollouts_are_drawn_and_wrong_answers_counted():
    record = looked("sdpa", ((9.0,),), "pathfinder", rollouts=(rollout(1), rollout(0), rollout(1)))
    report, _ = assemble(join([record], []), "a report")
    section = next(section for section in report.sections if section.id == "attended")
    (figure,) = section.figures
    assert figure.title == (
        f"Attention rollout: sdpa on pathfinder at scale mini, {SIDE} x {SIDE}, seed 0"
    )
    assert "2 of 3 answers are right" in figure.caption and "3 pictures" in figure.alt
    assert figure.svg.count("<image") == 6
    assert "label 1, said 0" in figure.svg
