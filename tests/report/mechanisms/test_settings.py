"""Mechanisms that were trained with other settings than they were timed with."""

from __future__ import annotations

from lra.report.mechanisms.settings import in_words, stand_ins, trained_and_timed
from lra.report.select import join

from lra.core.records import Record
from lra.report.assemble import assemble
from report.sample import efficiency, mechanism, quality

FEW, MANY = mechanism("performer", features=32), mechanism("performer", features=256)
SENTENCE = "performer was trained at scale mini with features=32, and timed with features=256."
RUN = [
    quality(FEW, "text", 0.7),
    quality("sdpa", "text", 0.9),
    efficiency(MANY, 1024, "train", 0.02, 50e6),
    efficiency("sdpa", 1024, "train", 0.04, 100e6),
]


def test_settings_are_named_where_a_scale_has_several_of_a_mechanism() -> None:
    assert {kept.label for kept in join(RUN, []).kept} == {"performer", "sdpa"}
    both = join([*RUN, quality(MANY, "text", 0.8)], [])
    labels = {kept.label for kept in both.kept}
    assert labels == {"performer (features=32)", "performer (features=256)", "sdpa"}
    assert trained_and_timed(both.entries) == {}


def test_what_was_trained_meets_what_was_timed_with_the_same_settings() -> None:
    sections = {
        section.id: section
        for section in assemble(join([*RUN, quality(MANY, "text", 0.8)], []), "test")[0].sections
    }
    alt = sections["tradeoff"].figures[0].alt
    assert "performer (features=256)" in alt and "features=32" not in alt


def test_settings_that_were_not_timed_stand_beside_those_that_were() -> None:
    """A trial beside a reference: no two configurations are alike, and each finds its place."""
    trial, timed = (mechanism("performer", features=64, redraw=r) for r in (0, 1000))
    run = [
        quality(trial, "text", 0.8),
        quality("sdpa", "text", 0.9),
        efficiency(timed, 1024, "train", 0.01, 50e6),
        efficiency("sdpa", 1024, "train", 0.04, 100e6),
    ]
    few = mechanism("performer", features=32, redraw=0)
    selection = join(run, [quality(few, "text", 0.7)])
    name = "performer (features=64, redraw=0)"
    differences = trained_and_timed(selection.entries)
    (told,) = in_words(differences, {("mini", name)})
    assert told == f"{name} was trained at scale mini with redraw=0, and timed with redraw=1000."
    sections = {section.id: section for section in assemble(selection, "test")[0].sections}
    figure = sections["tradeoff"].figures[0]
    assert name in figure.alt
    assert told in figure.caption


def test_what_was_timed_at_most_lengths_stands_for_what_was_not_timed() -> None:
    """As where a second configuration was timed beside a public implementation alone."""
    beside = mechanism("performer", features=128)
    shorter = efficiency(MANY, 512, "train", 0.01, 50e6)
    run = [*RUN, shorter, efficiency(beside, 1024, "train", 0.03, 50e6)]
    selection = join(run, [])
    assert stand_ins(selection.entries, "mini")["performer", "run"] == "performer (features=256)"
    differences = trained_and_timed(selection.entries)
    assert differences["mini", "performer (features=32)"] == ("features=32", "features=256")
    sections = {section.id: section for section in assemble(selection, "t")[0].sections}
    assert "performer (features=32)" in sections["tradeoff"].figures[0].alt
    tie = join([*run, efficiency(beside, 512, "train", 0.03, 50e6)], [])
    assert ("performer", "run") not in stand_ins(tie.entries, "mini")
    assert trained_and_timed(tie.entries) == {}


def test_settings_trained_at_another_scale_take_no_stand_in_away() -> None:
    shorter = efficiency(MANY, 512, "train", 0.01, 50e6)
    beside = efficiency(mechanism("performer", features=128), 1024, "train", 0.03, 50e6)
    elsewhere = [quality(one, "text", 0.8, scale="compact") for one in (MANY, "sdpa")]
    selection = join([*RUN, shorter, beside, *elsewhere], [])
    assert stand_ins(selection.entries, "mini")["performer", "run"] == "performer (features=256)"
    assert ("performer", "run") not in stand_ins(selection.entries, "compact")
    assert [*trained_and_timed(selection.entries)] == [("mini", "performer (features=32)")]
    sections = {section.id: section for section in assemble(selection, "t")[0].sections}
    scatters = [f.alt for f in sections["tradeoff"].figures if f.id.startswith("tradeoff")]
    assert ["performer (features=256)" in alt for alt in scatters] == [True, False]
    assert ["performer (features=32)" in alt for alt in scatters] == [False, True]


def test_another_scale_needs_no_other_name() -> None:
    other = join([*RUN, quality(mechanism("performer", features=64), "text", scale="small")], [])
    assert {kept.label for kept in other.kept} == {"performer", "sdpa"}
    assert [*trained_and_timed(other.entries)] == [("mini", "performer"), ("small", "performer")]


def test_only_mechanisms_whose_settings_differ_are_named() -> None:
    found = trained_and_timed(join(RUN, []).entries)
    assert found == {("mini", "performer"): ("features=32", "features=256")}
    assert in_words(found, found.keys()) == [SENTENCE]
    alike = [quality(MANY, "text"), efficiency(MANY, 1024, "train", 0.02, 50e6)]
    assert trained_and_timed(join(alike, []).entries) == {}
    assert trained_and_timed(join(RUN[:1], []).entries) == {}


def _sized(names: str, scale: str = "mini") -> list[Record]:
    return [
        record
        for name in names
        for record in (
            quality(mechanism(name, size=1), "text", scale=scale),
            efficiency(mechanism(name, size=9), 1024, "train", 0.02, 50e6),
        )
    ]


def test_many_mechanisms_are_one_sentence() -> None:
    selection = join(_sized("abcd"), [])
    differences = trained_and_timed(selection.entries)
    assert in_words(differences, differences.keys()) == [
        "Trained at scale mini, and timed with the settings in brackets: a with size=1 (size=9); "
        "b with size=1 (size=9); c with size=1 (size=9); d with size=1 (size=9)."
    ]
    (names,) = in_words(differences, differences.keys(), briefly=True)
    assert names in assemble(selection, "t")[0].caveats
    assert names == (
        "Trained at scale mini and timed with other settings, which the tables name: 4 mechanisms."
    )


def test_each_scale_has_one_form_whatever_is_shown_of_it() -> None:
    differences = trained_and_timed(join([*_sized("abcd"), *_sized("ab", "small")], []).entries)
    shown = {(scale, "a") for scale in ("mini", "small")}
    small = "a was trained at scale small with size=1, and timed with size=9."
    assert in_words(differences, shown) == [
        "Trained at scale mini, and timed with the settings in brackets: a with size=1 (size=9).",
        small,
    ]
    assert in_words(differences, shown, briefly=True) == [
        "Trained at scale mini and timed with other settings, which the tables name: a.",
        small,
    ]
    assert in_words(differences, ()) == []
    scales = [*_sized("ab"), *_sized("ab", "small")]
    told = assemble(join(scales, []), "test")[0].caveats
    assert sum("was trained at scale" in sentence for sentence in told) == 4


def test_the_report_says_so_wherever_both_meet() -> None:
    report, _ = assemble(join(RUN, []), "test")
    assert SENTENCE in report.caveats
    sections = {section.id: section for section in report.sections}
    assert SENTENCE in sections["quality"].tables[0].notes
    assert SENTENCE in sections["latency"].text
    assert SENTENCE in sections["tradeoff"].figures[0].caption


def test_a_setting_that_a_later_version_added_is_no_difference_where_it_is_none() -> None:
    earlier = mechanism("performer", features=32)
    later = mechanism("performer", features=32, parity="none", options={})
    other = mechanism("performer", features=64, parity="none")
    alike = [quality(earlier, "text"), efficiency(later, 1024, "train", 0.02, 50e6)]
    assert trained_and_timed(join(alike, []).entries) == {}
    told = [quality(earlier, "text"), efficiency(other, 1024, "train", 0.02, 50e6)]
    assert trained_and_timed(join(told, []).entries) == {
        ("mini", "performer"): ("features=32", "features=64")
    }
    newer = quality(later, "text", 0.8, started="2026-11-21T10:00:00Z")
    selection = join([quality(earlier, "text", 0.7), newer], [])
    assert [(one.label, one.record.id) for one in selection.kept] == [("performer", newer.id)]
    chosen = mechanism("performer", features=32, parity="lra2021")
    labels = {kept.label for kept in join([newer, quality(chosen, "text")], []).kept}
    assert labels == {"performer (parity=none)", "performer (parity=lra2021)"}
