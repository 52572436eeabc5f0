"""Ours beside public implementations: paired by round, above the floor, and against the goal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from lra.core import peers
from lra.core.records import Record
from lra.core.scales import load_suite
from lra.report.model import Value
from lra.report.pairs import pairs_of, processes
from lra.report.sections.peers import PeerComparison, Place, analyse, sections
from lra.report.words import TIMES
from report.analysed import analysed
from report.sample import efficiency, mechanism, with_metrics

OURS = mechanism("bigbird", block=64, random=3)
THEIRS = mechanism("peer:hf_bigbird", block_size=64, random_blocks=3, pad_to=64)
FAR, NEAR = "at most 0.8 of theirs above the floor", "at most theirs, which is near the floor"


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


def only(*records: Record) -> PeerComparison:
    (one,) = analyse(analysed(records))
    return one


def place(*records: Record) -> Place:
    (found,) = only(*records).times.values()
    return found


def size(*records: Record) -> Place:
    (found,) = only(*records).sizes.values()
    return found


def value(*records: Record, memory: bool = False) -> Value:
    (section,) = sections(analysed(records))
    (row,) = section.tables[0].rows
    return row.values[memory]


def bar(found: Place) -> tuple[str, str]:
    return found.word, found.verdict.bar if found.verdict else ""


def test_ratios_are_paired_by_round_and_stand_above_the_floor() -> None:
    found = place(*beside())
    assert found.whole is not None and found.above is not None
    # 2/6 and 4/12; (2 - 1)/(6 - 1) and (4 - 2)/(12 - 2).
    assert (found.whole.value, found.above.value) == pytest.approx((1 / 3, 0.2))
    assert bar(found) == ("meets", FAR)
    assert value(*beside()).note == "net 0.200, meets"
    memory = size(*beside())
    assert memory.whole is not None and memory.whole.value == pytest.approx(0.12)
    shown = value(*beside(), memory=True)
    assert (shown.text, shown.note) == ("0.12", "meets")


def test_the_section_has_the_goal_a_summary_and_how_theirs_differs() -> None:
    (section,) = sections(analysed(beside()))
    goal, time, memory = section.text
    assert f"at most 0.8 {TIMES} theirs" in goal
    assert (time, memory) == ("Goal for time: met by 1 of 1.", "Goal for memory: met by 1 of 1.")
    assert section.tables[0].columns == ("time, 4,096", "memory, 4,096")
    assert section.tables[1].rows[0].label == "peer:hf_bigbird"


def _changed(record: Record, who: str, replicates: Sequence[int], *, later: bool) -> Record:
    cell = record.cell
    if cell.mechanism.name != who or cell.replicate not in replicates:  # type: ignore[union-attr]
        return record
    if later:
        return msgspec.structs.replace(record, started_at="2026-11-20T11:16:00Z")
    return with_metrics(record, control_after=5e-3)


@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize("who", ["bigbird", "peer:hf_bigbird", "identity"])
def test_a_round_is_left_out_whoever_was_disturbed_or_came_later(who: str, later: bool) -> None:
    quiet = beside(ours=(2.0, 2.0, 9.0), theirs=(6.0, 6.0, 6.0), floor=(1.0, 1.0, 1.0))
    records = [_changed(record, who, [2], later=later) for record in quiet]
    found = place(*records)
    assert found.whole is not None and found.whole.value == pytest.approx(1 / 3)
    assert (found.whole.pairs, found.left_out) == (2, 1)
    assert value(*records).note.endswith("1 round left out")
    assert place(*quiet).left_out == 0
    # A call takes as much memory an hour later.
    memory = size(*records)
    assert memory.whole is not None and (memory.whole.pairs, memory.left_out) == (3, 0)


def test_a_disturbed_exact_attention_says_nothing_of_how_far_theirs_is() -> None:
    # Without its last round theirs is 0.05 of it above the floor, near; with it 0.5.
    records = [
        *timed(OURS, (1.1, 1.1, 1.1)),
        *timed(THEIRS, (2.0, 2.0, 2.0)),
        *timed("identity", (1.0, 1.0, 1.0)),
        *timed("sdpa", (20.0, 2.0, 2.0)),
    ]
    loud = [_changed(record, "sdpa", [1, 2], later=False) for record in records]
    assert (bar(place(*records))[1], bar(place(*loud))[1]) == (FAR, NEAR)


def test_work_of_a_peer_more_or_less_is_no_reason_to_judge() -> None:
    # No output projection: ours may be slower beside it for that.
    slow = place(*beside(ours=(6.0, 12.0), theirs=(6.0, 12.0)))
    assert (slow.word, slow.against) == ("not judged", ("theirs has no output projection",))
    large = [*timed(OURS, (2.0,), memory=500e6), *timed(THEIRS, (6.0,), memory=60e6)]
    assert size(*large, *beside()[4:]).against == ("theirs has no output projection",)
    turned = timed(mechanism("peer:local_attention", window_size=8), (6.0, 12.0), memory=500e6)
    ours = timed(mechanism("sliding_window", left=8, right=8), (2.0, 4.0), memory=60e6)
    for found in (place, size):
        one = found(*ours, *turned, *beside()[4:])
        assert one.against == ("theirs rotates queries and keys by their positions",)


MASKED = "theirs gets a mask though nothing is padded (always_mask)"


@pytest.mark.parametrize(
    ("name", "settings", "length", "told"),
    [
        ("hf_bigbird", {"block_size": 64, "always_mask": True}, 4096, (MASKED,)),
        ("hf_bigbird", {"block_size": 64, "always_mask": False}, 4096, ()),
        (
            "hf_bigbird",
            {"block_size": 64, "pad_to": 768},
            1000,
            ("theirs is padded to 1536; its blocks fill 1024 (pad_to)",),
        ),
        # 3072 and 3008; a block of theirs; and two buckets, which it cannot do without.
        ("hf_bigbird", {"block_size": 64, "pad_to": 768}, 3000, ()),
        ("hf_bigbird", {"block_size": 64, "pad_to": 64}, 1000, ()),
        ("reformer_pytorch", {"bucket_size": 64, "n_hashes": 4, "pad_to": 128}, 1000, ()),
        ("reformer_pytorch", {"bucket_size": 64, "n_hashes": 4, "pad_to": 128}, 70, ()),
        (
            "reformer_pytorch",
            {"bucket_size": 8, "n_hashes": 4, "pad_to": 128, "always_mask": True},
            200,
            (MASKED, "theirs is padded to 256; its blocks fill 208 (pad_to)"),
        ),
    ],
)
def test_a_peer_that_our_adapter_burdens_is_not_judged(
    name: str, settings: dict[str, Any], length: int, told: tuple[str, ...]
) -> None:
    if name == "reformer_pytorch":
        ours = mechanism("reformer", chunk=settings["bucket_size"], rounds=4)
    else:
        ours, settings = OURS, {"random_blocks": 3, **settings}
    theirs = mechanism(f"peer:{name}", **settings)
    anchors = [*timed("identity", (1.0, 1.0), length), *timed("sdpa", (9.0, 9.0), length)]
    records = [*timed(ours, (2.0, 2.0), length), *timed(theirs, (6.0, 6.0), length), *anchors]
    for found in (place(*records), size(*records)):
        assert (found.word, found.against) == ("not judged" if told else "meets", told)


def test_no_pair_of_the_suite_is_burdened() -> None:
    suite = load_suite("peers")
    lengths = {n for block in suite.efficiency for n in block.lengths}
    assert 3000 in lengths
    for pair in suite.pairs:
        config = {**peers.read(pair.theirs).settings, **pair.their_settings}
        ours = timed(mechanism(pair.ours, **pair.settings), (2.0,), 3000)
        records = [*ours, *timed(mechanism(pair.theirs, **config), (6.0,), 3000)]
        (found,) = pairs_of(processes(analysed(records).costs.figures))
        assert not any(found.burdens(n) for n in lengths), pair.theirs


def test_a_setting_of_ours_that_theirs_lacks_is_other_work() -> None:
    theirs = timed(mechanism("peer:performer_pytorch", nb_features=64), (6.0, 12.0))
    for kernel, word in (("softmax", "meets"), ("relu", "not judged")):
        ours = timed(mechanism("performer", features=64, kernel=kernel), (2.0, 4.0))
        assert place(*ours, *theirs, *beside()[4:]).word == word


def test_at_the_floor_is_a_word() -> None:
    found = place(*beside(ours=(1.0, 1.5)))
    assert found.above is not None and found.above.ours_at_floor == 2 and found.word == "meets"
    assert "at the floor" in value(*beside(ours=(1.0, 1.5))).note
    found = place(*beside(ours=(2.0, 3.0), theirs=(1.0, 2.5)))
    assert found.above is not None and found.above.theirs_at_floor == 1 and bar(found)[1] == NEAR


def test_without_a_floor_the_ratio_stays_and_the_goal_is_undecided() -> None:
    found = place(*timed(OURS, (2.0, 2.0)), *timed(THEIRS, (6.0, 6.0)))
    assert found.whole is not None and found.whole.value == pytest.approx(1 / 3)
    assert found.above is None and found.word == "undecided"


def test_a_peer_that_has_no_figure_says_how_it_ended() -> None:
    gone = efficiency(mechanism("peer:hf_bigbird"), 4096, "train", status="error")
    records = [*timed(OURS, (2.0,)), gone, *timed("identity", (1.0,))]
    shown = value(*records)
    assert (shown.text, shown.number) == ("error (ValueError)", None)
    assert place(*records).word == ""


def test_other_work_is_shown_and_not_judged() -> None:
    other = mechanism("bigbird", block=32, random=3)
    records = [*timed(other, (2.0, 2.0)), *timed(THEIRS, (6.0, 6.0)), *beside()[4:]]
    assert place(*records).word == size(*records).word == "not judged"
    (section,) = sections(analysed(records))
    assert "block 32 here, block_size 64 there" in section.tables[0].legend[1]
    # Where one of ours does the same work, it alone stands beside.
    (pair,) = only(*timed(other, (2.0, 2.0)), *beside()).pairs
    assert "block=64" in pair.ours[0].label


@pytest.mark.parametrize(
    ("ours", "theirs", "share"),
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
def test_no_less_time_is_asked_beside_a_peer_with_less_to_compute(
    ours: Any, theirs: Any, share: float
) -> None:
    rounds = *timed(ours, (4.9, 4.9)), *timed(theirs, (6.0, 6.0))
    found = place(*rounds, *beside(floor=(1.0, 1.0))[4:])
    # 3.9 of 5 above the floor.
    words = f"at most {share:g} of theirs above the floor"
    assert bar(found) == ("meets" if share == 1 else "undecided", words)


@pytest.mark.parametrize("window", [None, [64, 64], "wide"])
def test_a_setting_of_theirs_that_is_no_number_of_positions_stops_no_report(window: Any) -> None:
    ours, theirs = (
        mechanism("longformer", window=64),
        mechanism("peer:hf_longformer", window=window),
    )
    (pair,) = only(*timed(ours, (2.0,)), *timed(theirs, (6.0,)), *beside()[4:]).pairs
    assert pair.burdens(4096) == () and any("window 64 here" in text for text in pair.unlike)


@pytest.mark.parametrize(
    ("setting", "is_like"), [(64, True), (64.0, True), ("64", False), (None, False)]
)
def test_settings_of_both_are_compared_as_values(setting: Any, is_like: bool) -> None:
    theirs = mechanism("peer:hf_bigbird", block_size=setting, random_blocks=3, pad_to=64)
    (pair,) = only(*timed(OURS, (2.0,)), *timed(theirs, (6.0,)), *beside()[4:]).pairs
    assert (not pair.unlike) == is_like


@pytest.mark.parametrize("elsewhere", [{"batch": 4}, {"head_width": 32}, {"direction": "causal"}])
def test_another_setting_does_not_stand_beside(elsewhere: Any) -> None:
    assert analyse(analysed([*timed(OURS, (2.0,)), *timed(THEIRS, (6.0,), **elsewhere)])) == []
    assert only(*timed(OURS, (2.0,)), *timed(THEIRS, (6.0,)))


def test_other_lengths_and_no_counterpart_give_no_row() -> None:
    def none(*records: Record) -> bool:
        return analyse(analysed(records)) == []

    assert none(*timed(OURS, (2.0,), 4096), *timed(THEIRS, (6.0,), 8192))
    assert none(*timed("linear", (2.0,)), *timed(THEIRS, (6.0,)))
    assert none(*timed("linear", (2.0,)), *timed(mechanism("peer:routing_transformer"), (6.0,)))
    assert none(*timed(OURS, (2.0,)), *timed(mechanism("peer:gone"), (6.0,)))
    # A reference is no round of the run.
    beside_run = analysed(timed(OURS, (2.0,)), timed(THEIRS, (6.0,)))
    assert len(beside_run.evidence.measurements) == 2 and analyse(beside_run) == []


def test_the_summary_counts_every_outcome() -> None:
    met = beside(ours=(2.0, 2.0), theirs=(6.0, 6.0), floor=(1.0, 1.0))
    other = mechanism("performer", features=64, kernel="softmax")
    slower = timed(mechanism("peer:performer_pytorch", nb_features=64), (6.0, 6.0))
    relu = mechanism("performer", features=64, kernel="relu")

    def told(*records: Record) -> str:
        (section,) = sections(analysed([*met, *records]))
        return section.text[1].removeprefix("Goal for time: met by 1 of ")

    assert told() == "1."
    assert told(*slower, *timed(other, (9.0, 9.0))) == "2, missed by 1."
    assert told(*slower, *timed(other, (4.9, 4.9))) == "2, undecided for 1."
    assert told(*slower, *timed(relu, (2.0, 2.0))) == "2, not judged for 1."
    assert told(*slower, efficiency(other, 4096, "train", status="error")) == "1."
