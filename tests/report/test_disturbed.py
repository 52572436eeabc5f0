"""Timings on a busy machine are told by their controls, marked, and measured again on demand."""

from __future__ import annotations

import msgspec

from lra.core.records import Metric, Record
from lra.report.assemble import analyse
from lra.report.cards import cards
from lra.report.leaderboard import leaderboard
from lra.report.load.disturbed import disturbed
from lra.report.load.select import Evidence, join
from lra.report.sections.caveats import caveats
from lra.report.sections.headline import headline

from .sample import THERE, efficiency, quality


def slowed(record: Record, before: float, after: float) -> Record:
    controls = {
        "control_before": Metric(value=before, unit="s"),
        "control_after": Metric(value=after, unit="s"),
    }
    return msgspec.structs.replace(record, metrics={**record.metrics, **controls})


QUIET = [efficiency(name, n) for name in ("linear", "sdpa") for n in (512, 1024, 2048)]
BUSY = slowed(efficiency("performer", 512, seconds=0.002), 13e-3, 16e-3)
ENDED_BUSY = slowed(efficiency("performer", 1024), 1e-3, 1.6e-3)
ELSEWHERE = slowed(efficiency("performer", 2048, machine=THERE), 13e-3, 13e-3)


def test_a_control_far_above_its_machine_s_usual_one_tells() -> None:
    records = [*QUIET, BUSY, ENDED_BUSY, ELSEWHERE, quality("sdpa", "text")]
    assert disturbed(records) == {BUSY.id, ENDED_BUSY.id}
    assert disturbed([*QUIET, slowed(BUSY, 1.4e-3, 1.4e-3)]) == set()
    assert disturbed([]) == set()


def test_where_all_was_busy_a_control_that_changed_meanwhile_tells() -> None:
    busy = [slowed(record, 16e-3, 15e-3) for record in QUIET]
    changed = slowed(BUSY, 4e-3, 16e-3)
    assert disturbed([*busy, changed]) == {changed.id}


def test_where_all_was_busy_the_fastest_samples_tell_what_is_usual() -> None:
    def patchy(record: Record) -> Record:
        control = Metric(value=16e-3, unit="s", samples=(16e-3, 1.1e-3), minimum=1.1e-3)
        metrics = {**record.metrics, "control_before": control, "control_after": control}
        return msgspec.structs.replace(record, metrics=metrics)

    assert disturbed(map(patchy, QUIET)) == {record.id for record in QUIET}


def test_half_of_the_cells_disturbed_leaves_the_usual_control_where_it_is() -> None:
    many = [slowed(record, 10e-3, 10e-3) for record in QUIET[:3]]
    assert disturbed([*many, *QUIET[3:]]) == {record.id for record in many}


def places(evidence: Evidence, metric: str) -> dict[tuple[str, int], dict[str, object]]:
    """The pooled costs of one metric, by mechanism and length."""
    pooled = analyse(evidence).costs.pooled
    own = pooled[pooled["metric"] == metric].to_dict("records")
    return {(row["mechanism"], row["length"]): row for row in own}  # type: ignore[misc]


def counted(evidence: Evidence) -> list[str]:
    return [text for text in caveats(analyse(evidence)) if "busy" in text]


def test_a_disturbed_time_is_marked_and_its_memory_counts() -> None:
    evidence = join([*QUIET, BUSY], [])
    assert places(evidence, "latency")["performer", 512]["disturbed"]
    assert places(evidence, "latency")["performer", 512]["ratio_disturbed"]
    (sentence,) = counted(evidence)
    assert "1 of 7 timings" in sentence


def test_a_timing_that_heat_held_down_is_marked_and_the_signs_say_so() -> None:
    def with_words(record: Record, *words: str) -> Record:
        return msgspec.structs.replace(record, method={"throttled_by": list(words)})

    hot = with_words(QUIET[0], "temperature")
    cool = with_words(QUIET[1])
    trained = with_words(quality("sdpa", "text"), "temperature")
    assert disturbed([hot, cool, trained, *QUIET[2:]]) == {hot.id}
    assert disturbed([with_words(BUSY), *QUIET]) == {BUSY.id}
    # At full load a board works at its power cap.
    assert disturbed([with_words(QUIET[0], "power cap"), *QUIET[1:]]) == set()
    both = with_words(QUIET[0], "power cap", "hardware slowdown")
    assert disturbed([both, *QUIET[1:]]) == {both.id}


def test_a_busy_process_that_failed_marks_no_figure_of_the_others() -> None:
    failed = efficiency("performer", 512, replicate=1)
    failed = msgspec.structs.replace(slowed(failed, 13e-3, 16e-3), status="timeout")
    evidence = join([*QUIET, efficiency("performer", 512), failed], [])
    assert ("run", failed.id) in evidence.busy
    place = places(evidence, "latency")["performer", 512]
    assert not place["disturbed"] and (place["processes"], place["asked"]) == (1, 2)


def test_only_timings_that_have_a_time_are_counted() -> None:
    ended = slowed(BUSY, 13e-3, 13e-3)
    cut = msgspec.structs.replace(slowed(ENDED_BUSY, 13e-3, 13e-3), status="timeout")
    skipped = efficiency("performer", 2048, status="skipped")
    selection = join([*QUIET, ended, cut, skipped], [])
    assert ("run", cut.id) in selection.busy
    (sentence,) = counted(selection)
    assert "1 of 7 timings" in sentence


def test_a_quiet_reference_twin_hides_nothing() -> None:
    """A cell measured again has the id of the committed one."""
    quiet = msgspec.structs.replace(BUSY, started_at="2020-01-01T00:00:00+00:00", metrics={
        **BUSY.metrics, **{name: Metric(value=1e-3, unit="s") for name in
                           ("control_before", "control_after")}})  # fmt: skip
    selection = join([*QUIET, BUSY], [*QUIET, quiet])
    assert selection.busy == {("run", BUSY.id)}
    own = selection.figures[selection.figures["origin"] == "run"]
    told = dict(zip(own["record"], own["disturbed"], strict=True))
    assert told == {record.id: record.id == BUSY.id for record in [*QUIET, BUSY]}
    (sentence,) = counted(selection)
    assert "1 of 7 timings" in sentence


def test_a_machine_of_the_reference_s_class_may_be_slower_throughout_but_not_far() -> None:
    slow = [slowed(record, 3.9e-3, 3.9e-3) for record in QUIET]
    assert join(slow, QUIET).busy == frozenset()
    held_up = [slowed(record, 4.1e-3, 4.1e-3) for record in QUIET]
    assert join(held_up, QUIET).busy == {("run", record.id) for record in held_up}
    there = [efficiency(name, 512, machine=THERE) for name in ("linear", "sdpa")]
    assert join(held_up, there).busy == frozenset()


def test_what_is_reported_is_what_rerun_disturbed_finds() -> None:
    part = [*QUIET, BUSY]
    found = {("run", id) for id in disturbed(part, QUIET)}
    assert join([BUSY], QUIET, store=part).busy == found


def test_a_disturbed_anchor_marks_every_ratio_to_it() -> None:
    busy = slowed(efficiency("sdpa", 512), 13e-3, 13e-3)
    found = places(join([*(r for r in QUIET if r.id != busy.id), busy], []), "latency")
    assert not found["linear", 512]["disturbed"]
    marked = [found["linear", n]["ratio_disturbed"] for n in (512, 1024, 2048)]
    assert marked == [True, False, False]


def test_a_busy_time_is_said_where_it_is_quoted_and_wins_no_front() -> None:
    quick = efficiency("performer", 1024, "train", 1e-4)
    accuracies = [quality(name, "text", 0.8) for name in ("performer", "linear", "sdpa")]
    steps = [efficiency(name, n, "train", 1e-3) for name in ("linear", "sdpa") for n in (512, 1024)]

    def told(timing: Record) -> tuple[set[str], str, dict[str, str]]:
        analysis = analyse(join([*accuracies, *steps, timing], []))
        page = next(one for one in cards(analysis) if one.mechanism == "performer")
        members = {key.mechanism for key in leaderboard(analysis).front}
        return members, headline(analysis).sentences[1], dict(page.facts)

    cost = "Time of a training step at length 1,024"
    front, sentence, facts = told(quick)
    assert "performer" in front and "busy" not in sentence + facts[cost]
    front, sentence, facts = told(slowed(quick, 13e-3, 16e-3))
    assert "performer" not in front and "busy" in sentence and "busy" in facts[cost]
