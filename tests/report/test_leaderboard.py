"""The leaderboard and its front: nobody is on it by noise."""

from __future__ import annotations

from typing import Any

import pytest

from lra.core.catalogue import EXACT, LOCAL, NO_MIXING
from lra.core.cells import VerifyCell
from lra.core.findings import Finding
from lra.core.records import Record
from lra.report.assemble import analyse
from lra.report.leaderboard import Leaderboard, leaderboard
from lra.report.load.select import join
from lra.report.sections.headline import EMPTY, headline
from lra.report.sections.leaderboard_table import leaderboard_table

from .sample import (
    HERE,
    LENGTHS,
    PROVENANCE,
    THERE,
    baseline,
    ceiling,
    efficiency,
    mechanism,
    quality,
    shown,
    store,
    with_metrics,
)


def check(name: str, softmax: str = "never", *, failed: str = "") -> Record:
    """A whole check whose card says how a mechanism comes to softmax attention."""
    cell = VerifyCell(
        machine=HERE,
        torch="2.13.0",
        threads=1,
        versions={"verify": "v1"},
        mechanism=mechanism(name),
    )
    laws = {"exact_softmax": "held", "causality": "held"} | ({failed: "failed"} if failed else {})
    return Record(
        id=cell.id,
        cell=cell,
        status="ok",
        started_at="2026-11-20T12:00:00Z",
        seconds=1.0,
        findings=tuple(Finding(law=law, verdict=v) for law, v in laws.items()),  # type: ignore[arg-type]
        method={"card": {"softmax": softmax}},
        provenance=PROVENANCE,
    )


def run(accuracy: dict[str, float], seconds: dict[str, float], **how: Any) -> list[Record]:
    """One training on text and one timing at two lengths of each mechanism."""
    found = [quality(name, "text", value, **how) for name, value in accuracy.items()]
    for name, second in seconds.items():
        found += [efficiency(name, n, "train", second * n / 512) for n in (512, 1024)]
    return found


def board(records: list[Record], reference: list[Record] | None = None) -> Leaderboard:
    return leaderboard(analyse(join(records, reference or [])))


def test_without_exact_attention_there_is_no_length_from_which_one_pays() -> None:
    sides = ("linear", 1e-3), (EXACT, 2e-3)
    own, exact = (
        [efficiency(n, at, "train", s * at) for at in (512, 1024, 2048)] for n, s in sides
    )
    found = board(own)
    assert [one.pays_from for one in found.entries] == [None]
    assert "pays from" not in leaderboard_table(found).columns
    assert "pays from" in leaderboard_table(board([*own, *exact])).columns


def members(found: Leaderboard) -> set[str]:
    return {key.mechanism for key in found.front}


def test_chance_does_not_win_the_front() -> None:
    # A tenth of a point of one seed, for more than twice the time.
    accuracy = {EXACT: 0.854, "full": 0.855, "linear": 0.60}
    found = board(run(accuracy, {EXACT: 1.0, "full": 2.31, "linear": 0.2}))
    assert members(found) == {EXACT, "linear"}


def test_an_accuracy_that_is_told_apart_is_worth_its_time() -> None:
    found = board(run({EXACT: 0.80, "full": 0.90}, {EXACT: 1.0, "full": 2.0}))
    assert members(found) == {EXACT, "full"}


def test_the_same_function_is_never_told_apart() -> None:
    records = run({EXACT: 0.80, "full": 0.90}, {EXACT: 1.0, "full": 2.0})
    exact = [check("full", "always"), check(EXACT, "always")]
    assert members(board([*records, *exact])) == {EXACT}
    # Neither a configuration that may be exact nor a claim that failed makes it so.
    assert members(board([*records, check("full", "configured")])) == {EXACT, "full"}
    broken = check("full", "always", failed="exact_softmax")
    assert members(board([*records, broken])) == {EXACT, "full"}


def test_of_two_that_compute_the_same_the_quicker_is_on_the_front() -> None:
    # Nearer than a tenth, so that neither time is surely less.
    records = run({EXACT: 0.80, "chunked": 0.80}, {EXACT: 1.0, "chunked": 1.05})
    exact = [check("chunked", "always"), check(EXACT, "always")]
    assert members(board(records)) == {EXACT, "chunked"}
    assert members(board([*records, *exact])) == {EXACT}


def test_softmax_attention_with_fewer_parameters_is_another_function() -> None:
    records = run({EXACT: 0.90}, {EXACT: 1.0, "multi_query": 1.0})
    records.append(quality("multi_query", "text", 0.60, parameters=60_000))
    exact = [check("multi_query", "always"), check(EXACT, "always")]
    assert members(board([*records, *exact])) == {EXACT}


def test_seeds_tell_apart_what_one_could_not() -> None:
    records = [
        quality(name, "text", 0.70 + add + 0.001 * seed, seed=seed)
        for name, add in ((EXACT, 0.0), ("full", 0.01))
        for seed in range(3)
    ]
    for name, second in ((EXACT, 1.0), ("full", 2.0)):
        records += [efficiency(name, n, "train", second) for n in (512, 1024)]
    assert members(board(records)) == {EXACT, "full"}


def test_no_mixing_is_no_choice() -> None:
    found = board(run({EXACT: 0.8, NO_MIXING: 0.6}, {EXACT: 1.0, NO_MIXING: 0.01}))
    assert members(found) == {EXACT}


def test_ratios_are_to_exact_attention_at_the_longest_length_that_most_reached() -> None:
    records = run({EXACT: 0.8, "linear": 0.7}, {EXACT: 1.0, "linear": 0.25})
    records.append(efficiency(EXACT, 4096, "train", 8.0))
    found = board(records)
    assert found.length == 1024
    linear = next(one for one in found.entries if one.key.mechanism == "linear")
    assert linear.time is not None and linear.time.value == pytest.approx(0.25)
    assert not linear.time.elsewhere and not linear.time.other_settings


def test_what_was_timed_elsewhere_stands_by_its_ratio_there() -> None:
    own = run({"performer": 0.7}, {EXACT: 1.0, "performer": 0.5})
    theirs = [quality("linear", "text", 0.6, machine=THERE)]
    for name, second in ((EXACT, 4.0), ("linear", 1.0)):
        theirs += [efficiency(name, n, "train", second, machine=THERE) for n in (512, 1024)]
    found = board(own, theirs)
    linear = next(one for one in found.entries if one.key.mechanism == "linear")
    assert linear.time is not None and linear.time.elsewhere
    assert linear.time.value == pytest.approx(0.25)


def test_what_was_trained_with_other_settings_than_timed_says_so() -> None:
    records = [quality(mechanism("linear", features=8), "text", 0.7), quality(EXACT, "text", 0.8)]
    for one, second in ((mechanism("linear", features=64), 0.2), (mechanism(EXACT), 1.0)):
        records += [efficiency(one, n, "train", second) for n in (512, 1024)]
    linear = next(one for one in board(records).entries if one.key.mechanism == "linear")
    assert linear.time is not None and linear.time.other_settings


def test_each_figure_that_is_known_is_a_column_and_no_other() -> None:
    records = run({EXACT: 0.9, "linear": 0.8}, {EXACT: 2.0, "linear": 1.0})
    assert columns(records) == ["accuracy, %", "training time", "memory"]
    for name, second in {EXACT: 1e-3, "linear": 2e-3}.items():
        records.append(efficiency(name, 2048, "train", 4 * second))
        step = efficiency(name, 512, "decode", second)
        records.append(with_metrics(step, state_bytes=1e6))
    records.append(check("linear"))
    assert columns(records) == [
        "accuracy, %",
        "training time",
        "memory",
        "decoding time",
        "state",
        "pays from",
        "laws held",
    ]


def columns(records: list[Record]) -> list[str]:
    board = headline(analyse(join(records, []))).leaderboard
    assert board is not None
    return list(board.columns)


def test_mechanisms_that_were_only_timed_stand_below_the_trained() -> None:
    records = run({EXACT: 0.9, "linear": 0.8}, {EXACT: 2.0, "linear": 1.0, "reformer": 0.5})
    records.append(efficiency("peer:performer_pytorch", 1024, "train", 0.1))
    board = headline(analyse(join(records, []))).leaderboard
    assert board is not None
    assert [row.mechanism for row in board.rows] == [EXACT, "linear", "reformer"]
    accuracy, time, *_ = board.rows[-1].values
    assert accuracy.number is None and time.number == pytest.approx(0.25)


def test_a_shortcut_that_is_not_beaten_is_marked() -> None:
    """On 2,000 test rows a point above it is luck."""
    accuracy = {EXACT: 0.9, "linear": 0.55, "performer": 0.61, "full": 0.64}
    found = board([*run(accuracy, dict.fromkeys(accuracy, 1.0)), baseline("text", bag=0.6)])
    beaten = {one.key.mechanism: one.shortcuts_beaten for one in found.entries}
    assert beaten == {EXACT: "all", "linear": "none", "performer": "none", "full": "all"}


def test_who_beats_no_shortcut_is_on_no_front() -> None:
    seconds = {EXACT: 1.0, "linear": 0.5, "performer": 0.2}
    records = [
        *run({EXACT: 0.9, "linear": 0.7, "performer": 0.55}, seconds),
        *(quality(name, "retrieval", 0.59) for name in seconds),
        *(baseline(task, bag=0.6) for task in ("text", "retrieval")),
    ]
    found = board(records)
    beaten = {one.key.mechanism: one.shortcuts_beaten for one in found.entries}
    assert beaten == {EXACT: "some", "linear": "some", "performer": "none"}
    assert members(found) == {EXACT, "linear"}


def test_a_control_is_a_shortcut_and_no_choice() -> None:
    accuracy = {EXACT: 0.9, "linear": 0.7, LOCAL: 0.75, NO_MIXING: 0.5}
    found = board(run(accuracy, {EXACT: 1.0, "linear": 0.9, LOCAL: 0.1, NO_MIXING: 0.05}))
    beaten = {one.key.mechanism: one.shortcuts_beaten for one in found.entries}
    assert beaten == {EXACT: "all", "linear": "none", LOCAL: None, NO_MIXING: None}
    assert members(found) == {EXACT}


def test_the_headline_has_at_most_five_sentences_and_no_digit_of_chance() -> None:
    first = headline(analyse(join(*store())))
    assert 0 < len(first.sentences) <= 5
    table = first.leaderboard
    assert table is not None
    means = {row.mechanism: row.values[0].text.split()[0] for row in table.rows}
    # Four tasks of five are no mean, and one seed has no tenth of a point.
    assert means["performer"] == "n/a" and means["sdpa"].isdigit()


def test_one_seed_is_told_whatever_exact_attention_has() -> None:
    def last(*, number: int) -> str:
        records = [quality("linear", "text", 0.7, seed=seed) for seed in range(number)]
        records += [quality(EXACT, "text", 0.8, seed=seed) for seed in range(3)]
        return headline(analyse(join([*records, baseline("text", bag=0.75)], []))).sentences[-1]

    assert last(number=1).startswith("One seed each")
    assert all("best shortcut: linear" in last(number=number) for number in (1, 2))
    assert "seed" not in last(number=2)


def test_a_store_of_timings_alone_has_a_leaderboard_of_costs() -> None:
    records = run({}, {EXACT: 1.0, "linear": 0.25})
    table = headline(analyse(join(records, []))).leaderboard
    assert table is not None and "accuracy, %" not in table.columns
    assert {row.mechanism for row in table.rows} == {EXACT, "linear"}


@pytest.mark.parametrize("mode", ["forward", "decode"])
def test_a_store_of_one_mode_has_a_leaderboard_and_its_sentence(mode: str) -> None:
    records = [
        efficiency(name, n, mode, second * n / 512)
        for name, second in ((EXACT, 1.0), ("linear", 0.25))
        for n in (512, 1024, 2048)
    ]
    first = headline(analyse(join(records, [])))
    assert first.leaderboard is not None
    values = {row.mechanism: row.values[0].number for row in first.leaderboard.rows}
    assert values == {EXACT: pytest.approx(1.0), "linear": pytest.approx(0.25)}
    assert "linear 0.25" in first.sentences[0] or "linear takes 0.25" in first.sentences[0]


def test_a_length_that_was_never_reached_is_no_length_from_which_it_pays() -> None:
    records = [
        efficiency(name, n, "train", second)
        for name, second in ((EXACT, 0.1), ("linear", 1.0))
        for n in (512, 1024, 2048)
    ]
    sentences = headline(analyse(join(records, []))).sentences
    assert not [sentence for sentence in sentences if ">2,048" in sentence]
    assert any("at no length" in sentence for sentence in sentences)


@pytest.mark.parametrize("record", [baseline("text"), ceiling(), shown("performer")])
def test_no_store_with_a_record_is_said_to_have_none(record: Record) -> None:
    assert headline(analyse(join([record], []))).sentences != (EMPTY,)
    assert headline(analyse(join([], []))).sentences == (EMPTY,)


def test_sentences_name_the_settings_where_a_mechanism_has_several() -> None:
    records = [
        quality(EXACT, "text", 0.8),
        *(efficiency(EXACT, n, "train", 1.0) for n in (512, 1024)),
    ]
    for features, accuracy in ((8, 0.6), (64, 0.7)):
        own = mechanism("linear", features=features)
        records.append(quality(own, "text", accuracy))
        records += [efficiency(own, n, "train", 0.01 * features) for n in (512, 1024)]
    sentences = headline(analyse(join(records, []))).sentences
    assert (
        all(sentence.count("features=") == sentence.count("linear") for sentence in sentences)
        and "features=64" in sentences[0]
    )


def test_every_order_of_records_gives_the_same_leaderboard() -> None:
    own, reference = store()
    tasks = sorted(LENGTHS)
    assert tasks
    one = headline(analyse(join(own, reference)))
    other = headline(analyse(join(own[::-1], reference[::-1])))
    assert one == other
