"""No two headings of a report are alike: whatever tells two tables apart stands in their titles."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from itertools import product
from typing import Any

import msgspec
import pytest

from lra.core.cells import QualityCell
from lra.core.records import Metric, Record
from lra.core.trained_attention import TrainedAttention
from lra.report.assemble import assemble, spoken
from lra.report.headings import distinct
from lra.report.page import markdown_text
from lra.report.quality.by_token import bits_sentences
from lra.report.quality.group import group_of
from lra.report.quality.tables import bits_tables
from lra.report.select import Selection, join
from lra.report.table import Report, Section, Table

from .sample import MODEL, TRAINING, baseline, data, efficiency, mechanism, quality

RATES = (1e-3, 3e-3)


def trained(name: str, task: str, accuracy: float | None, **asked: str) -> list[Record]:
    """A training under rules, of a source, on a track and in a precision."""
    track, precision = asked.get("track", "matched"), asked.get("precision", "float32")
    changed = {k: asked[k] for k in ("rules", "source", "order") if k in asked}
    window = {"left": 4, "right": 4} if name == "sliding_window" else {}
    found = []
    for rate, seed in product(RATES if track == "tuned" else RATES[:1], (0, 1)):
        training = msgspec.structs.replace(TRAINING, learning_rate=rate, precision=precision)
        record = quality(
            mechanism(name, **window),
            task,
            None if accuracy is None else accuracy + seed / 100,
            seed=seed,
            data_spec=data(task, length=128 if task == "bytes" else 64, **changed),
            training=training,
            model=MODEL.by_token() if task in ("recall", "bytes") else MODEL,
        )
        assert isinstance(record.cell, QualityCell)
        metric = "bits_per_byte" if task == "bytes" else "accuracy"
        cell = msgspec.structs.replace(record.cell, track=track, metric=metric)
        more: dict[str, Metric] = {}
        if task == "bytes":
            more["bits_per_byte"] = Metric(value=2.0 + seed / 100, unit="bit")
        if task in ("recall", "bytes"):
            more["decode_agreement"] = Metric.share(1.0)
        found.append(
            msgspec.structs.replace(
                record,
                id=cell.id,
                cell=cell,
                metrics=record.metrics | more,
                attended=TrainedAttention(examples=64, distances=((9.0,),)),
            )
        )
    return found


KINDS = [
    *(
        {"track": track, "rules": rules, "source": source}
        for track, rules, source in product(
            ("matched", "tuned"), ("fixed", "lra2021"), ("generated", "file")
        )
    ),
    {"precision": "bfloat16"},
]


def every() -> list[Record]:
    """Trainings of each kind at one scale, and timings of two settings."""
    records = []
    for kind in KINDS:
        for task in ("text", "listops"):
            records += trained("sdpa", task, 0.8, **kind)
            records += trained("linear", task, 0.7, **kind)
            records += trained("identity", task, 0.6, **kind)
            records += trained("sdpa", task, 0.5, order="shuffled", **kind)
        for name in ("sdpa", "linear"):
            records += trained(name, "recall", 0.9, **kind)
            records += trained(name, "bytes", None, **kind)
    records += [baseline(task, data_spec=data(task, length=64)) for task in ("text", "listops")]
    for name, batch, length in product(("sdpa", "linear", "identity"), (1, 4), (256, 512, 1024)):
        seconds = length * batch * (1e-6 if name == "linear" else 2e-6)
        records += [efficiency(name, length, m, seconds, batch=batch) for m in ("forward", "train")]
    return records


@pytest.fixture(scope="module")
def selection() -> Selection:
    return join(every(), [])


@pytest.fixture(scope="module")
def as_made(selection: Selection) -> Report:
    """The report before titles that its sections share are told apart."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lra.report.assemble.distinct", list)
        # Some two hundred plots, of which titles alone are looked at.
        patch.setattr("lra.report.pictures.style._drawn", lambda *_, **__: b"<svg></svg>")
        return assemble(selection, "a report")[0]


@pytest.fixture(scope="module")
def report(as_made: Report) -> Report:
    return msgspec.structs.replace(as_made, sections=tuple(distinct(as_made.sections)))


def titles(sections: Iterable[Section]) -> list[str]:
    return [one.title for part in sections for one in (part, *part.tables, *part.figures)]


def test_no_two_headings_are_alike(report: Report) -> None:
    found = titles(report.sections)
    assert len(found) > 150
    assert sorted(found) == sorted(set(found))
    lines = [line for line in markdown_text(report).splitlines() if line.startswith("#")]
    assert sorted(lines) == sorted(set(lines))


def test_titles_on_trainings_say_themselves_what_these_share(as_made: Report) -> None:
    costs = ("latency", "memory", "crossover", "growth", "limit", "repeatability", "reference")
    found = titles(part for part in as_made.sections if not part.id.startswith(costs))
    assert sorted(found) == sorted(set(found))


def test_no_two_headings_of_the_answer_are_alike_nor_its_sentences_on_bits(
    report: Report, selection: Selection
) -> None:
    headings = [sentence for sentence in report.answer if sentence.endswith(":")]
    # Whole inputs and token by token of each kind, language modelling, speed and memory.
    assert len(headings) == len(set(headings)) == 2 * len(KINDS) + 2
    assert "Test accuracy at scale mini, tuned track (generated data, 64 tokens):" in headings
    words = "mini, data from files, lra2021 rules, tuned track, token by token"
    assert f"Test accuracy at scale {words} (64 tokens):" in headings
    starts = [one.partition(", on ")[0] for one in bits_sentences(bits_tables(selection), ())]
    assert len(starts) == len(set(starts)) == len(KINDS)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({}, "mini"),
        ({"source": "file"}, "mini, data from files"),
        ({"source": "hub"}, "mini, data from a hub"),
        ({"rules": "lra2021"}, "mini, lra2021 rules"),
        ({"track": "tuned"}, "mini, tuned track"),
        ({"precision": "bfloat16"}, "mini, bfloat16"),
    ],
)
def test_what_is_usual_goes_without_saying(asked: dict[str, str], words: str) -> None:
    (record, *_) = trained("sdpa", "text", 0.8, **asked)
    assert isinstance(record.cell, QualityCell)
    assert group_of(record.cell).words == words


def table(title: str) -> Table:
    return Table("id", title, "", "", (), ())


@pytest.mark.parametrize(
    ("sections", "titles"),
    [
        (["Latency", "Reference"], ["Time", "Time: reference"]),
        (["Latency: batch 1", "Latency: batch 4"], ["Time: batch 1", "Time: batch 4"]),
        (
            ["Latency: batch 1", "Reference: batch 1", "Reference: batch 1"],
            ["Time: batch 1", "Time: reference: batch 1", "Time: reference: batch 1 (2)"],
        ),
    ],
)
def test_a_title_that_sections_share_takes_what_sets_these_apart(
    sections: list[str], titles: list[str]
) -> None:
    found = distinct(
        [Section(str(n), one, tables=(table("Time"),)) for n, one in enumerate(sections)]
    )
    assert [one.title for section in found for one in section.tables] == titles


def test_a_title_that_no_other_has_stays() -> None:
    (found,) = distinct([Section("a", "Latency: batch 1", tables=(table("Time"),))])
    assert found.tables[0].title == "Time"


def test_links_of_the_markdown_lead_to_one_heading_each(report: Report) -> None:
    text = markdown_text(report)
    links = re.findall(r"\]\(#([^)]*)\)", text)
    assert len(links) == len(report.sections) > 20
    headings = [line.lstrip("#") for line in text.splitlines() if re.match("##+ ", line)]
    named = Counter(
        re.sub(r"[^\w\- ]", "", words[1:].replace("\\", "").lower()).replace(" ", "-")
        for words in headings
    )
    assert [link for link in links if named[link] != 1] == []


def test_what_was_trained_beside_times_is_told_with_the_lengths_of_all_of_it() -> None:
    records = [*trained("a", "recall", 0.5), *trained("a", "bytes", None)]
    records += [efficiency("a", 2048, "train", 1.0, 1e6)]
    told, _ = spoken(join(records, []))
    assert "Trained on generated data, 64 to 128 tokens." in told


def test_the_scale_with_the_most_mechanisms_comes_first_and_every_section_names_its_own() -> None:
    def asked(scale: str, *names: str, **more: Any) -> list[Record]:
        return [quality(name, "text", 0.8, scale=scale, **more) for name in names]

    files = data("text", source="file")
    records = [
        *asked("compact", "sdpa", "linear"),
        *asked("mini", "sdpa", data_spec=files),
        *asked("mini", "sdpa", "linear", "performer"),
        *asked("small", "sdpa", "linear"),
    ]
    report, terminal = assemble(join(records, []), "a report")
    assert [one.title for one in report.sections if one.id.startswith("quality")] == [
        "Quality: test accuracy at scale mini",
        "Quality: test accuracy at scale mini, data from files",
        "Quality: test accuracy at scale compact",
        "Quality: test accuracy at scale small",
    ]
    numbered = {one.id: one for one in report.sections if one.id.startswith("quality")}
    assert list(numbered) == ["quality", "quality-2", "quality-3", "quality-4"]
    assert [one.tables[0].id for one in numbered.values()] == [f"quality-{n}" for n in range(1, 5)]
    told, printed = spoken(join(records, []))
    assert terminal == printed and printed is not None
    assert printed.title == "Test accuracy at scale mini"
    assert told[0] == report.answer[0]
    assert told[0] == "Test accuracy at scale mini (generated data, 160 tokens):"
    # What no mixing of the reference adds to a scale is no mechanism of the run.
    even = [*asked("compact", "linear"), *asked("mini", "linear")]
    told, _ = spoken(join(even, asked("compact", "identity")))
    assert told[0] == "Test accuracy at scale compact (generated data, 160 tokens):"
    told, _ = spoken(join(even, asked("mini", "identity")))
    assert told[0] == "Test accuracy at scale compact (generated data, 160 tokens):"
    (alone,) = assemble(join(records[:2], []), "a report")[0].sections[:1]
    assert alone.title == "Quality"
