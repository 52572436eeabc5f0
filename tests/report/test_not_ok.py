"""Cells that did not end well: each is listed, with its reason and whatever sets it apart."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from lra.core.records import Record
from lra.report.model import Table
from lra.report.sections.caveats import caveats
from lra.report.sections.endings import sections
from report.analysed import analysed, lines
from report.sample import MODEL, THERE, TRAINING, ceiling, efficiency, error, quality, shown
from report.test_capabilities import check


def table(*records: Record, reference: tuple[Record, ...] = ()) -> Table:
    (section,) = sections(analysed(records, reference))
    (found,) = section.tables
    return found


def asked(*records: Record) -> list[str]:
    return sorted(line[1] for line in lines(table(*records)))


def test_every_cell_that_is_not_ok_is_listed_with_its_reason() -> None:
    records = [
        quality("a", "text"),
        quality("a", "image", status="crash", seed=2),
        efficiency("b", 512, "train", status="oom"),
    ]
    found = table(*records, reference=(efficiency("c", 512, "train", status="skipped"),))
    assert lines(found) == [
        ["b", "train at 512", "OOM", "timing", "asked for 4.3 GB, 2 GB allowed"],
        ["a", "image, seed 2", "crash (SIGSEGV)", "training", "the worker died"],
        ["c (reference)", "train at 512", "skipped: a shorter length failed", "n/a", "oom at 1024"],
    ]
    assert sections(analysed([quality("a", "text")])) == []


def test_cells_whose_words_are_equal_have_rows_of_their_own() -> None:
    near = [error("a", 512, status="oom", input_scale=scale) for scale in (1.0, 1.0000001)]
    first, second = lines(table(*near))
    assert first == second


def test_cells_that_differ_in_length_alone_and_ended_alike_share_a_row() -> None:
    def at(length: int, mode: str = "train", **more: Any) -> Record:
        return efficiency("b", length, mode, **{"status": "oom", **more})

    found = table(at(512), at(1024), at(2048, status="skipped"))
    assert [line[:3] for line in lines(found)] == [
        ["b", "train at 512 and 1024", "OOM"],
        ["b", "train at 2048", "skipped: a shorter length failed"],
    ]
    many = [at(2**k, replicate=r) for k in range(5, 10) for r in (0, 1)]
    assert asked(*many, at(64, "forward")) == [
        "forward at 64",
        "train at 32 to 512 (5 lengths, 10 cells)",
    ]


@pytest.mark.parametrize(
    ("change", "here", "there"),
    [
        ({"batch": 8}, "batch=1", "batch=8"),
        ({"dtype": "bfloat16"}, "dtype=float32", "dtype=bfloat16"),
        ({"heads": 8}, "heads=4", "heads=8"),
        ({"head_width": 32}, "head_width=64", "head_width=32"),
        ({"direction": "causal"}, "direction=bidirectional", "direction=causal"),
        ({"execution": "compiled"}, "execution=eager", "execution=compiled"),
        ({"scale": "small"}, "scale=mini", "scale=small"),
        (
            {"machine": THERE},
            "cores=2, processor=Example CPU 9000",
            "cores=8, processor=Other CPU 1",
        ),
    ],
)
def test_cells_of_other_settings_never_share_a_row_and_say_what_differs(
    change: dict[str, Any], here: str, there: str
) -> None:
    own = [efficiency("b", 512, status="oom"), efficiency("b", 512, status="oom", **change)]
    beside = ", ".join(part for part in ("forward at 512", here) if part)
    assert asked(*own) == sorted([beside, f"forward at 512, {there}"])
    assert asked(own[0]) == ["forward at 512"]


def test_levels_models_and_trainings_are_told_apart_too() -> None:
    whole = {"status": "oom", "level": "model", "task": "text"}
    deep = msgspec.structs.replace(MODEL, layers=8)
    assert asked(
        efficiency("b", 512, status="oom"),
        efficiency("b", 512, status="oom", level="attention"),
        efficiency("b", 512, model=MODEL, **whole),
        efficiency("b", 512, model=deep, **whole),
    ) == [
        "forward at 512",
        "forward of a model of text at 512, layers=2",
        "forward of a model of text at 512, layers=8",
        "forward of the attention alone at 512",
    ]
    longer = msgspec.structs.replace(TRAINING, steps=600)
    assert asked(
        quality("a", "text", status="oom"),
        quality("a", "text", status="oom", training=longer),
        quality("a", "image", status="oom"),
    ) == ["image, seed 0", "text, seed 0, steps=300", "text, seed 0, steps=600"]


def test_checks_pictures_and_ceilings_that_failed_are_listed_and_counted() -> None:
    limits = msgspec.structs.replace(ceiling(), status="timeout", metrics={})
    bad = [
        check("x", "2026", {}, status="error"),
        check("x", "2025", {}, status="crash", source="older"),
        check("x", "2024", {}, status="crash", torch="2.12.0", machine=THERE, threads=8),
        shown("y", status="error"),
        limits,
    ]
    records = [quality("a", "text"), check("y", "2026", {"causality": "held"}), *bad]
    reference = (ceiling(machine=THERE),)
    assert [line[:3] for line in lines(table(*records, reference=reference))] == [
        ["x", "short check", "error (X)"],
        ["y", "picture at 16", "error (ValueError)"],
        ["the machine", "large product and copy in float32", "timeout"],
    ]
    (sentence,) = caveats(analysed(records, reference))
    assert sentence == (
        "1 of 2 checks (1 error), 1 of 1 picture (1 error) and 1 of 1 ceiling (1 timeout) are not "
        "ok."
    )
    assert len(lines(table(*bad))) == 3


def test_trainings_that_a_mechanism_does_not_support_share_a_row_for_each_reason() -> None:
    def no(task: str, name: str = "a", **more: Any) -> Record:
        return quality(name, task, None, status="unsupported", **more)

    crashed = quality("a", "text", status="crash", seed=2)
    records = [no("text"), no("image", seed=1), no("text", "b"), crashed]
    assert asked(*records) == ["image and text at mini", "text at mini", "text, seed 2"]
