"""What trained attention reads: distances by mechanism and task, and pictures of rollouts."""

import msgspec
import numpy as np
import pytest

from lra.core.attended import Attended, pack_rollout
from lra.report.assemble import assemble
from lra.report.mechanisms.attended import attended_section
from lra.report.select import join
from tests.report import sample

SIDE = 6


def looked(name, distances, task="text", *, rollouts=(), seed=0, order="given"):
    """A training whose attention was looked at."""
    spec = sample.data(task, length=100, order=order)
    record = sample.quality(name, task, 0.8, data_spec=spec, seed=seed)
    attended = Attended(examples=64, distances=distances, rollouts=rollouts)
    return msgspec.structs.replace(record, attended=attended)


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
    assert found["sdpa"][1] == ("20.0", "20.0 %")
    assert found["linear"] == [("8.00", "8.0 %"), ("n/a", "")]


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
    assert figure.title == f"Attention rollout: sdpa on pathfinder, {SIDE} x {SIDE}, seed 0"
    assert "2 of 3 answers are right" in figure.caption and "3 pictures" in figure.alt
    assert figure.svg.count("<image") == 6
    assert "label 1, said 0" in figure.svg
