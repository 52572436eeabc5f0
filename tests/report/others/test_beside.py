"""Ours beside public implementations: paired by round, above the floor, and against the goal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from lra.report.costs.tables import efficiency_tables
from lra.report.entries import Entry
from lra.report.others.beside import beside_sections
from lra.report.others.pairs import pairs_of
from lra.report.select import join
from lra.report.table import Row, Section

from lra.core import peers
from lra.core.records import Record
from lra.core.scales import load_suite
from lra.report.assemble import assemble
from lra.report.words import TIMES
from report.sample import efficiency, mechanism, with_metrics

OURS = mechanism("bigbird", block=64, random=3)
THEIRS = mechanism("peer:hf_bigbird", block_size=64, random_blocks=3, pad_to=64)


def timed(name: Any, seconds: Sequence[float], length: int = 4096, **more: Any) -> list[Record]:
    """A round for each time."""
    return [
        efficiency(name, length, "train", second, replicate=r, **more)
        for r, second in enumerate(seconds)
    ]


def beside(
    ours: Sequence[float] = (2.0, 4.0),
    theirs: Sequence[float] = (6.0, 12.0),
    floor: Sequence[float] = (1.0, 2.0),
) -> list[Record]:
    return [
        *timed(OURS, ours, memory=60e6),
        *timed(THEIRS, theirs, memory=500e6),
        *timed("identity", floor, memory=30e6),
        *timed("sdpa", [10 * cost for cost in floor], memory=44e6),
    ]


def sections(*records: Record) -> list[Section]:
    selection = join(list(records), [])
    return beside_sections(efficiency_tables(selection), selection.busy)


def entries_of(records: list[Record]) -> list[Entry]:
    (tables,) = efficiency_tables(join(records, []))
    return list(tables.entries)


def rows(*records: Record) -> list[Row]:
    ((table,),) = [section.tables for section in sections(*records)]
    return list(table.rows)


def test_ratios_are_paired_by_round_and_stand_above_the_floor() -> None:
    (row,) = rows(*beside())
    length, whole, over, fast, sizes, small = row.cells
    assert (row.label, length.text) == ("bigbird / peer:hf_bigbird", "4096")
    # 2/6 and 4/12; (2 - 1)/(6 - 1) and (4 - 2)/(12 - 2).
    assert (whole.ratio, over.ratio) == pytest.approx((1 / 3, 0.2))
    assert whole.note == "0.333 to 0.333; 2 rounds"
    assert over.text == f"0.200 {TIMES}"
    assert (fast.text, fast.note) == ("meets", "at most 0.8 of theirs above the floor")
    assert sizes.text == "60.0, 500, 30.0" and sizes.note == f"ours over theirs 0.12 {TIMES}"
    assert small.text == "meets"


def test_the_section_says_what_was_set_alike_and_what_the_peer_does_besides() -> None:
    (section,) = sections(*beside())
    notes = section.tables[0].notes
    assert (
        "bigbird and peer:hf_bigbird: block = block_size = 64; random = random_blocks = 3." in notes
    )
    assert any(note.startswith("peer:hf_bigbird: no output projection") for note in notes)
    assert "Goal for time: met by 1 of 1." in section.text
    (rule,) = (note for note in notes if note.startswith("Goal for time"))
    assert rule.startswith(
        f"Goal for time: where theirs takes at least 0.1 {TIMES} sdpa's time more than identity, "
        f"ours (less identity) must take at most 0.8 {TIMES} theirs (less identity), or 1 {TIMES} "
        "where theirs has less to compute; elsewhere ours must take at most theirs, both whole."
    )
    assert section.tables[0].columns[4].startswith("memory in MB")
    report, _ = assemble(join(beside(), []), "mine")
    assert "beside" in [one.id for one in report.sections]


def test_a_disturbed_round_is_left_out_and_counted() -> None:
    quiet = beside(ours=(2.0, 2.0, 9.0), theirs=(6.0, 6.0, 6.0), floor=(1.0, 1.0, 1.0))
    loud = [
        with_metrics(r, control_after=5e-3)
        if r.cell.mechanism.name == "bigbird" and r.cell.replicate == 2  # type: ignore[union-attr]
        else r
        for r in quiet
    ]
    (row,) = rows(*loud)
    assert row.cells[1].ratio == pytest.approx(1 / 3)
    assert row.cells[1].note.endswith("2 rounds; 1 disturbed round left out")
    (row,) = rows(*quiet)
    assert row.cells[1].note.endswith("3 rounds")
    # A slow machine makes nothing larger.
    assert row.cells[4].value == 60e6


@pytest.mark.parametrize("who", ["bigbird", "peer:hf_bigbird", "identity"])
def test_a_round_is_left_out_whoever_was_disturbed_or_came_later(who: str) -> None:
    def changed(record: Record, later: bool) -> Record:
        cell = record.cell
        if cell.mechanism.name != who or cell.replicate != 2:  # type: ignore[union-attr]
            return record
        if later:
            return msgspec.structs.replace(record, started_at="2026-11-20T11:16:00Z")
        return with_metrics(record, control_after=5e-3)

    quiet = beside(ours=(2.0, 2.0, 9.0), theirs=(6.0, 6.0, 6.0), floor=(1.0, 1.0, 1.0))
    for later, told in ((False, "disturbed round"), (True, "split round")):
        (row,) = rows(*(changed(record, later) for record in quiet))
        assert row.cells[1].ratio == pytest.approx(1 / 3)
        assert row.cells[1].note.endswith(f"2 rounds; 1 {told} left out")
        # What a call takes of memory is the same an hour later.
        assert row.cells[4].value == 60e6


def test_a_disturbed_exact_attention_says_nothing_of_how_far_theirs_is() -> None:
    # Without its last round theirs is 0.05 of it above the floor, near; with it 0.5.
    records = [
        *timed(OURS, (1.1, 1.1, 1.1)),
        *timed(THEIRS, (2.0, 2.0, 2.0)),
        *timed("identity", (1.0, 1.0, 1.0)),
        *timed("sdpa", (20.0, 2.0, 2.0)),
    ]
    loud = [
        with_metrics(r, control_after=5e-3)
        if r.cell.mechanism.name == "sdpa" and r.cell.replicate  # type: ignore[union-attr]
        else r
        for r in records
    ]
    assert rows(*records)[0].cells[3].note == "at most 0.8 of theirs above the floor"
    assert rows(*loud)[0].cells[3].note == "at most theirs, which is near the floor"


def test_what_a_peer_does_more_or_less_is_no_reason_to_judge() -> None:
    # No output projection: what is slower beside it may be so for that.
    (row,) = rows(*beside(ours=(6.0, 12.0), theirs=(6.0, 12.0)))
    assert (row.cells[3].text, row.cells[3].note) == (
        "not judged",
        "theirs has no output projection",
    )
    ours, theirs = mechanism("sliding_window", left=8, right=8), "peer:local_attention"
    turned = timed(mechanism(theirs, window_size=8), (6.0, 12.0))
    (row,) = rows(*timed(ours, (2.0, 4.0)), *turned, *beside()[4:])
    assert (row.cells[3].text, row.cells[3].note) == (
        "not judged",
        "theirs rotates queries and keys by their positions",
    )


def test_a_goal_for_memory_is_no_more_judged_by_what_a_peer_does_more_or_less() -> None:
    small, large = {"memory": 60e6}, {"memory": 500e6}
    (row,) = rows(*timed(OURS, (2.0,), **large), *timed(THEIRS, (6.0,), **small), *beside()[4:])
    assert (row.cells[5].text, row.cells[5].note) == (
        "not judged",
        "theirs has no output projection",
    )
    turned = timed(mechanism("peer:local_attention", window_size=8), (6.0,), **large)
    ours = timed(mechanism("sliding_window", left=8, right=8), (2.0,), **small)
    (row,) = rows(*ours, *turned, *beside()[4:])
    assert (row.cells[5].text, row.cells[5].note) == (
        "not judged",
        "theirs rotates queries and keys by their positions",
    )


MASKED = "theirs gets a mask though nothing is padded (always_mask)"


@pytest.mark.parametrize(
    ("name", "settings", "length", "told"),
    [
        ("hf_bigbird", {"block_size": 64, "always_mask": True}, 4096, MASKED),
        ("hf_bigbird", {"block_size": 64, "always_mask": False}, 4096, ""),
        (
            "hf_bigbird",
            {"block_size": 64, "pad_to": 768},
            1000,
            "theirs is padded to 1536; its blocks fill 1024 (pad_to)",
        ),
        # 3072 and 3008; a block of theirs; and two buckets, which it cannot do without.
        ("hf_bigbird", {"block_size": 64, "pad_to": 768}, 3000, ""),
        ("hf_bigbird", {"block_size": 64, "pad_to": 64}, 1000, ""),
        ("reformer_pytorch", {"bucket_size": 64, "n_hashes": 4, "pad_to": 128}, 1000, ""),
        ("reformer_pytorch", {"bucket_size": 64, "n_hashes": 4, "pad_to": 128}, 70, ""),
        (
            "reformer_pytorch",
            {"bucket_size": 8, "n_hashes": 4, "pad_to": 128, "always_mask": True},
            200,
            f"{MASKED}; theirs is padded to 256; its blocks fill 208 (pad_to)",
        ),
    ],
)
def test_a_peer_that_our_adapter_burdens_is_not_judged(
    name: str, settings: dict[str, Any], length: int, told: str
) -> None:
    if name == "reformer_pytorch":
        ours = mechanism("reformer", chunk=settings["bucket_size"], rounds=4)
    else:
        ours, settings = OURS, {"random_blocks": 3, **settings}
    theirs = mechanism(f"peer:{name}", **settings)
    anchors = [*timed("identity", (1.0, 1.0), length), *timed("sdpa", (9.0, 9.0), length)]
    (row,) = rows(*timed(ours, (2.0, 2.0), length), *timed(theirs, (6.0, 6.0), length), *anchors)
    assert [(row.cells[n].text, row.cells[n].note) for n in (3, 5)] == (
        [("not judged", told)] * 2
        if told
        else [
            ("meets", "at most 0.8 of theirs above the floor"),
            ("meets", "at most theirs, or within 10 % of the floor"),
        ]
    )


def test_no_pair_of_the_suite_is_burdened() -> None:
    suite = load_suite("peers")
    lengths = {n for block in suite.efficiency for n in block.lengths}
    assert 3000 in lengths
    for pair in suite.pairs:
        config = {**peers.read(pair.theirs).settings, **pair.their_settings}
        ours = timed(mechanism(pair.ours, **pair.settings), (2.0,), 3000)
        for n in lengths:
            entries = entries_of([*ours, *timed(mechanism(pair.theirs, **config), (6.0,), 3000)])
            (found,) = pairs_of(entries)
            assert found.burdens(n) == (), pair.theirs


def test_a_setting_of_ours_that_theirs_lacks_is_other_work() -> None:
    theirs = timed(mechanism("peer:performer_pytorch", nb_features=64), (6.0, 12.0))
    for kernel, told in (("softmax", "meets"), ("relu", "not judged")):
        ours = timed(mechanism("performer", features=64, kernel=kernel), (2.0, 4.0))
        (row,) = rows(*ours, *theirs, *beside()[4:])
        assert row.cells[3].text == told


def test_at_the_floor_is_said_in_words() -> None:
    (row,) = rows(*beside(ours=(1.0, 1.5)))
    over, fast = row.cells[2:4]
    assert (over.text, over.note, fast.text) == ("at the floor", "ours in 2 of 2 rounds", "meets")
    (row,) = rows(*beside(ours=(2.0, 3.0), theirs=(1.0, 2.5)))
    assert row.cells[2].note == "theirs in 1 of 2 rounds"
    assert row.cells[3].note == "at most theirs, which is near the floor"


def test_without_a_floor_the_ratio_stays_and_the_goal_is_undecided() -> None:
    (row,) = rows(*timed(OURS, (2.0, 2.0)), *timed(THEIRS, (6.0, 6.0)))
    assert row.cells[1].ratio == pytest.approx(1 / 3)
    assert [cell.text for cell in row.cells[2:4]] == ["n/a", "undecided"]
    assert row.cells[2].note == "identity not measured beside"


def test_a_peer_that_has_no_figure_says_how_it_ended() -> None:
    gone = [efficiency(mechanism("peer:hf_bigbird"), 4096, "train", status="error")]
    (row,) = rows(*timed(OURS, (2.0,)), *gone, *timed("identity", (1.0,)))
    assert row.cells[1].text == "n/a"
    assert row.cells[1].note == "peer:hf_bigbird: error (ValueError)"
    assert row.cells[2].note == "", "the floor was measured"
    assert [cell.text for cell in row.cells[3:]] == ["n/a", "n/a", "n/a"]


def test_other_work_is_shown_and_not_judged() -> None:
    other = mechanism("bigbird", block=32, random=3)
    (row,) = rows(*timed(other, (2.0, 2.0)), *timed(THEIRS, (6.0, 6.0)), *beside()[4:])
    assert row.cells[3].text == row.cells[5].text == "not judged"
    assert row.cells[3].note == "block 32 here, block_size 64 there"
    # Where one of ours does the same work, it alone stands beside.
    found = rows(*timed(other, (2.0, 2.0)), *beside())
    assert [row.cells[3].text for row in found] == ["meets"]
    assert "block=64" in found[0].label


@pytest.mark.parametrize(
    ("ours", "theirs", "bar"),
    [
        (
            mechanism("sinkhorn", block=64),
            mechanism("peer:sinkhorn_transformer", bucket_size=64),
            1,
        ),
        (mechanism("linear"), mechanism("peer:linear_attention_transformer"), 1),
        (OURS, THEIRS, 0.8),
    ],
)
def test_of_what_has_less_to_compute_no_less_time_is_asked(
    ours: Any, theirs: Any, bar: float
) -> None:
    rounds = *timed(ours, (4.9, 4.9)), *timed(theirs, (6.0, 6.0))
    (row,) = rows(*rounds, *beside(floor=(1.0, 1.0))[4:])
    assert row.cells[3].note == f"at most {bar:g} of theirs above the floor"
    # 3.9 of 5 above the floor.
    assert row.cells[3].text == ("meets" if bar == 1 else "undecided")


@pytest.mark.parametrize("elsewhere", [{"batch": 4}, {"head_width": 32}, {"direction": "causal"}])
def test_what_was_measured_in_another_setting_does_not_stand_beside(elsewhere: Any) -> None:
    assert sections(*timed(OURS, (2.0,)), *timed(THEIRS, (6.0,), **elsewhere)) == []
    assert len(sections(*timed(OURS, (2.0,)), *timed(THEIRS, (6.0,)))) == 1


def test_other_lengths_and_no_counterpart_give_no_row() -> None:
    assert sections(*timed(OURS, (2.0,), 4096), *timed(THEIRS, (6.0,), 8192)) == []
    assert sections(*timed("linear", (2.0,)), *timed(THEIRS, (6.0,))) == []
    routed = mechanism("peer:routing_transformer")
    assert sections(*timed("linear", (2.0,)), *timed(routed, (6.0,))) == []
    assert sections(*timed(OURS, (2.0,)), *timed(mechanism("peer:gone"), (6.0,))) == []


def test_a_reference_is_no_round_of_the_run() -> None:
    selection = join(timed(OURS, (2.0,)), timed(THEIRS, (6.0,)))
    assert len(selection.kept) == 2
    assert beside_sections(efficiency_tables(selection), selection.busy) == []


def test_the_summary_counts_what_is_missed_unsure_or_not_judged_beside_what_is_met() -> None:
    met = beside(ours=(2.0, 2.0), theirs=(6.0, 6.0), floor=(1.0, 1.0))
    other = mechanism("performer", features=64, kernel="softmax")
    slower = timed(mechanism("peer:performer_pytorch", nb_features=64), (6.0, 6.0))
    relu = mechanism("performer", features=64, kernel="relu")

    def told(*records: Record) -> str:
        (section,) = sections(*met, *records)
        return section.text[1]

    assert told() == "Goal for time: met by 1 of 1."
    assert told(*slower, *timed(other, (9.0, 9.0))) == "Goal for time: met by 1 of 2, missed by 1."
    assert told(*slower, *timed(other, (4.9, 4.9))) == (
        "Goal for time: met by 1 of 2, undecided for 1."
    )
    assert told(*slower, *timed(relu, (2.0, 2.0))) == (
        "Goal for time: met by 1 of 2, not judged for 1."
    )
    gone = efficiency(other, 4096, "train", status="error")
    assert told(*slower, gone) == "Goal for time: met by 1 of 1."
