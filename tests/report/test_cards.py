"""The card of a mechanism: its own page, from records alone."""

from __future__ import annotations

import pytest

from lra.core.catalogue import EXACT, NO_MIXING
from lra.report.assemble import analyse
from lra.report.cards import Card, cards
from lra.report.load.select import join
from lra.report.write.html import card_html

from .sample import baseline, efficiency, mechanism, quality, shown, store
from .test_leaderboard import check


def card(name: str, *records: object) -> Card:
    (found,) = cards(analyse(join(list(records), [])), [name])  # type: ignore[arg-type]
    return found


def values(found: Card, topic: str) -> dict[str, list[float | None]]:
    """The numbers of a section's first table, by row."""
    (section,) = [one for one in found.sections if one.topic == topic]
    return {row.label: [v.number for v in row.values] for row in section.tables[0].rows}


def test_every_mechanism_of_ours_has_one_and_no_public_package() -> None:
    run, reference = store()
    peer = quality("peer:hf_bigbird", "text", 0.5)
    names = {one.mechanism for one in cards(analyse(join([*run, peer], reference)))}
    assert names == {"performer", "linear", EXACT, NO_MIXING}


def test_accuracies_stand_beside_exact_attention_the_floor_and_the_best_shortcut() -> None:
    accuracy = {"linear": 0.7, EXACT: 0.9, NO_MIXING: 0.5}
    records = [quality(name, "text", value) for name, value in accuracy.items()]
    records.append(baseline("text", majority=0.51, bag=0.6, rhyme=0.65))
    found = values(card("linear", *records), "Accuracy")
    assert found == {"text": [0.7, 0.9, 0.5, 0.65]}


def test_costs_say_from_which_length_it_pays() -> None:
    records = []
    for n in (256, 512, 1024, 2048):
        records.append(efficiency(EXACT, n, "train", 1e-3 * (n / 256) ** 2))
        records.append(efficiency("linear", n, "train", 4e-3 * n / 256))
    found = card("linear", *records)
    (section,) = [one for one in found.sections if one.topic == "Costs"]
    # Four times the time at 256 and a quarter of its growth: equal at 4 x 256.
    crossing = next(row for row in section.tables[0].rows if row.label.startswith("time"))
    assert crossing.values[0].number == pytest.approx(1024, rel=0.01)
    assert (
        section.figures
        and ("Faster training step from length", crossing.values[0].text) in found.facts
    )


def test_the_curve_is_the_runs_own_where_the_reference_has_more_times() -> None:
    own, reference = [], []
    for n in (256, 512, 1024, 2048):
        slow = "timeout" if n > 512 else "ok"
        own += [
            efficiency(EXACT, n, "train", 1.0),
            efficiency("linear", n, "train", 0.5, status=slow),
        ]
        earlier = {"started": "2026-11-19T11:00:00Z"}
        reference += [
            efficiency(name, n, "train", second, **earlier)
            for name, second in ((EXACT, 1.0), ("linear", 8.0))
        ]
    drawn = [
        next(section for section in one.sections if section.topic == "Costs").figures[0].svg
        for beside in ([], reference)
        for one in cards(analyse(join(own, beside)), ["linear"])
    ]
    assert drawn[0] == drawn[1]


def test_a_setting_that_was_timed_at_one_length_has_no_crossover_beside_others() -> None:
    records = [efficiency(EXACT, n, "train", 1e-3 * (n / 256) ** 2) for n in (256, 512, 1024, 2048)]
    for n in (256, 512, 1024, 2048):
        records.append(efficiency(mechanism("linear", features=8), n, "train", 4e-3 * n / 256))
    records.append(efficiency(mechanism("linear", features=64), 512, "train", 1e-6))
    (section,) = [one for one in card("linear", *records).sections if one.topic == "Costs"]
    times = [row for row in section.tables[0].rows if row.label.startswith("time")]
    assert [row.values[0].number for row in times] == [pytest.approx(1024, rel=0.01)]


def test_each_setting_has_accuracies_crossovers_and_uses_of_its_own() -> None:
    """None is picked for its test accuracy, and none is told apart by its label alone."""
    records = [efficiency(EXACT, n, "train", 1e-3 * (n / 256) ** 2) for n in (256, 512, 1024)]
    for kind, accuracy in (("a, b 1", 0.6), ("a", 0.7)):
        more = {"b": 1} if kind == "a" else {}
        own = mechanism("linear", a=kind, **more)
        records.append(quality(own, "text", accuracy))
        records += [efficiency(own, n, "train", 1e-3 * n / 256) for n in (256, 512, 1024)]
    found = {one.topic: one.tables[0] for one in card("linear", *records).sections}
    assert sorted(row.values[0].number or 0 for row in found["Accuracy"].rows) == [0.6, 0.7]
    assert len({row.label for row in found["Accuracy"].rows}) == 2
    assert len({row.group for row in found["Costs"].rows}) == 2
    assert len(found["Settings"].rows) == 2


def test_laws_that_are_broken_come_first() -> None:
    found = card("linear", check("linear", failed="padding_count"), quality("linear", "text"))
    (section,) = [one for one in found.sections if one.topic == "Laws"]
    assert section.tables[0].rows[0].label == "padding_count"
    assert ("Laws held", "2 of 3") in found.facts


def test_settings_of_training_and_timing_are_told_apart() -> None:
    records = [
        quality(mechanism("linear", features=8), "text"),
        efficiency(mechanism("linear", features=64), 512),
    ]
    (section,) = [one for one in card("linear", *records).sections if one.topic == "Settings"]
    used = {row.label: row.values[0].text for row in section.tables[0].rows}
    assert used == {"features 8": "trained (mini)", "features 64": "timed"}


def test_a_picture_alone_is_a_card_with_its_pattern() -> None:
    found = card("linear", shown("linear"), quality("linear", "text"))
    assert found.sections[0].topic == "Pattern" and found.sections[0].figures
    assert found.command == "python -m lra run --impl linear"


def test_the_command_measures_what_there_is() -> None:
    timed = efficiency("linear", 512)
    found = [
        card("linear", quality("linear", "text"), timed),
        card("linear", timed, shown("linear")),
        card("linear", shown("linear"), check("linear")),
        card("linear", check("linear")),
    ]
    verbs = [one.command.split()[3] for one in found]
    assert verbs == ["run", "sweep", "show", "verify"]


def test_a_cycle_has_a_page_with_the_settings_of_its_members() -> None:
    name = "sdpa+sliding_window"
    own = mechanism(name, sdpa={}, sliding_window={"left": 3})
    found = card(name, quality(own, "text", 0.7), quality("sdpa", "text", 0.9))
    assert values(found, "Accuracy")["text"][:2] == [0.7, 0.9]
    (section,) = [one for one in found.sections if one.topic == "Settings"]
    assert [row.label for row in section.tables[0].rows] == ["sliding_window.left 3"]
    assert found.command == f"python -m lra run --impl {name}"
    assert "/" not in found.file and found.file != card("sdpa", quality("sdpa", "text")).file


def test_rows_of_the_reference_are_marked_on_the_page() -> None:
    own, reference = (
        [
            efficiency(name, n, "train", second * n / 256, started=f"2026-11-{day}T11:00:00Z")
            for name, second in ((EXACT, 1.0), ("linear", share))
            for n in lengths
        ]
        for share, day, lengths in ((0.5, 20, (256, 512, 1024)), (0.25, 19, (256, 512, 1024, 2048)))
    )
    analysis = analyse(join(own, reference))
    (found,) = cards(analysis, ["linear"])
    (section,) = [one for one in found.sections if one.topic == "Costs"]
    origins = [row.origin for row in section.tables[0].rows]
    assert sorted(set(origins)) == ["reference", "run"]
    page = card_html(found, analysis.looks)
    assert page.count("(reference)</th>") == origins.count("reference")
