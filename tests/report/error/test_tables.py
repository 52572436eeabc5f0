"""The error section: means over seeds, budgets in order, and the declared law in the plot."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest
from lra.report.error.tables import ErrorTables, error_sentences, error_tables, ratio_text
from lra.report.pictures.error import error_figure
from lra.report.pictures.error_scale import error_scale_figure
from lra.report.pictures.style import looks
from lra.report.select import join
from lra.report.table import Cell, Figure, Table

from lra.core.records import Record
from lra.report import render
from lra.report.assemble import assemble
from lra.report.words import TIMES
from report.sample import THERE, efficiency, error, mechanism


def performer(features: int, length: int, output: float | None = 0.1, **fields: object) -> Record:
    own = mechanism("performer", features=features, kernel="softmax")
    return error(own, length, output, rate=0.5, **fields)


def tables(records: list[Record], reference: list[Record] | None = None) -> ErrorTables:
    (one,) = error_tables(join(records, reference or []))
    return one


def only(records: list[Record], reference: list[Record] | None = None) -> Table:
    (table,) = tables(records, reference).tables.values()
    return table


def cell(table: Table, row: str, column: str) -> Cell:
    found = next(r for r in table.rows if r.label == row)
    return found.cells[table.columns.index(column)]


def figure(one: ErrorTables) -> Figure:
    known = looks((c.mechanism, c.title) for curves in one.curves.values() for c in curves)
    found = error_figure(one, known)
    assert found is not None
    return found


def test_a_cell_is_the_mean_over_seeds_and_then_the_gradients() -> None:
    records = [performer(64, 256, value, seed=seed) for seed, value in enumerate((0.1, 0.3))]
    table = only(records)
    assert cell(table, "performer", "256") == Cell(
        "0.200", "0.40, 0.60, 0.80", value=pytest.approx(0.2), spread=pytest.approx(0.2)
    )
    assert table.notes[0] == "Means of 2 seeds, which lie up to 100 % of the mean apart."
    assert "of the output, then of the gradients by queries, keys and values" in table.caption
    assert table.title == f"Relative error, inputs {TIMES} 1"
    alone = only([performer(64, 256)])
    assert alone.notes[0] == "Of one seed."


def test_rows_are_budgets_in_order_and_exact_attention_comes_last() -> None:
    records = [performer(n, 256) for n in (1024, 64, 256)]
    records += [error("sdpa", 256, 2e-7), error("linformer", 256)]
    labels = [row.label for row in only(records).rows]
    budgets = [f"performer (features={n})" for n in (64, 256, 1024)]
    assert labels == ["linformer", *budgets, "sdpa"]


def test_each_input_scale_has_a_table_and_each_setting_of_sizes_a_section() -> None:
    records = [performer(64, n, input_scale=s) for n in (256, 1024) for s in (2.0, 0.5)]
    one = tables(records)
    assert list(one.tables) == [0.5, 2.0]
    assert {table.columns for table in one.tables.values()} == {("256", "1024")}
    assert (one.length, one.setting) == (
        1024,
        "The attention alone, bidirectional, batch 1, 2 heads of width 32, float32 on cpu, "
        "untrained.",
    )
    assert len(error_tables(join([*records, performer(64, 256, head_width=64)], []))) == 2


@pytest.mark.parametrize(
    ("status", "word"), [("oom", "OOM"), ("unsupported", "unsupported"), ("error", "error")]
)
def test_a_cell_without_a_figure_says_so_and_counts_in_no_mean(status: str, word: str) -> None:
    records = [performer(64, 256, seed=0), performer(64, 256, seed=1, status=status)]
    assert cell(only(records), "performer", "256").text.startswith(word)


def test_what_is_no_number_has_its_reason_below() -> None:
    table = only([performer(64, 256, None)])
    assert cell(table, "performer", "256") == Cell("not measured")
    assert "output error: not measured (it is nan)." in table.notes


def test_a_newer_record_replaces_an_older_one_and_a_reference_stands_beside_the_run() -> None:
    old = performer(64, 256, 0.9, started="2026-11-01T00:00:00Z", measure=9)
    table = only([old, performer(64, 256, 0.1)], [error("linformer", 256, machine=THERE)])
    assert cell(table, "performer", "256").text == "0.100"
    assert [(row.label, row.note) for row in table.rows] == [
        ("performer", ""),
        ("linformer", "reference"),
    ]


def test_a_mean_is_of_one_version_of_torch_and_of_no_machine_twice() -> None:
    old = [performer(64, 256, 0.9, seed=s, torch="2.12.0") for s in range(3)]
    old += [performer(64, 256, status="oom", seed=0, machine=THERE, torch="2.12.0")]
    new = [performer(64, 256, 0.1 + s, seed=s, started=f"2026-11-21T0{s}:00:00Z") for s in range(2)]
    elsewhere = performer(64, 256, 0.3, seed=1, started="2026-11-22T00:00:00Z", machine=THERE)
    selection = join([*old, *new, elsewhere], [])
    (one,) = error_tables(selection)
    (table,) = one.tables.values()
    assert cell(table, "performer", "256").text == "0.200"
    assert table.notes[0].startswith("Means of 2 seeds, ")
    assert selection.superseded == 5


def test_a_law_is_that_of_its_own_origin() -> None:
    budgets = [mechanism("performer", features=n) for n in (16, 64)]
    own = [error(one, 256) for one in budgets]
    old = "2026-11-01T00:00:00Z"
    there = [error(one, 256, rate=0.5, started=old) for one in budgets]
    assert {r.id for r in own} == {r.id for r in there}
    (curves,) = tables(own, there).curves.values()
    assert {(c.origin, c.rate) for c in curves} == {("run", None)}


def test_what_has_keys_of_its_own_says_so_and_is_nearest_to_nobody_elses_softmax() -> None:
    records = [error("reformer", 256, 0.01, own_keys=True), error("linformer", 256, 0.5)]
    # What failed last says nothing of keys.
    failed = error("reformer", 256, status="timeout", seed=1)
    one = tables([*records, failed])
    (table,) = one.tables.values()
    assert (
        "reformer is compared with softmax attention over its own keys and pairs."
    ) in table.notes
    mine = only([error("mine", 256, own_keys=True)])
    assert "mine is compared with softmax attention over its own keys and pairs." in mine.notes
    assert not any("its own" in note for note in only([error("linformer", 256)]).notes)


def test_figures_say_what_stands_beside_keys_of_its_own() -> None:
    def rounds(name: str, *, own_keys: bool) -> list[Record]:
        return [
            error(mechanism(name, rounds=n), 256, 1 / n, input_scale=scale, own_keys=own_keys)
            for n in (1, 4)
            for scale in (1.0, 2.0)
        ]

    told = "softmax attention over its own keys and pairs."
    for records, said in (
        (rounds("reformer", own_keys=True), told),
        (rounds("linformer", own_keys=False), ""),
    ):
        one = tables(records)
        known = looks((c.row.mechanism, c.row.variant) for c in one.by_scale)
        by_scale = error_scale_figure(one, known)
        assert by_scale is not None
        for drawn in (figure(one), by_scale):
            assert drawn.caption.endswith(said) and ("its own" in drawn.caption) == bool(said)


def test_a_law_of_features_is_not_drawn_where_something_else_varies_too() -> None:
    def both(features: int, redraw: int) -> Record:
        own = mechanism("performer", features=features, redraw=redraw)
        return error(own, 256, 1 / features, rate=0.5)

    (curves,) = tables([both(16, 1), both(64, 2)]).curves.values()
    assert [(c.budget, c.rate) for c in curves] == [("features + redraw", None)]


def test_the_largest_budget_stands_for_a_mechanism_though_smaller_ones_have_more_scales() -> None:
    records = [performer(64, 256, s, input_scale=s) for s in (0.5, 1.0)]
    records.append(performer(16, 256, 0.7, input_scale=2.0))
    (curve,) = tables(records).by_scale
    assert curve.row.variant == "performer (features=64)"


def test_curves_are_budgets_of_one_mechanism_at_the_longest_length() -> None:
    records = [performer(n, length, 1 / n) for n in (256, 16) for length in (256, 1024)]
    windows = [mechanism("sliding_window", left=n, right=n) for n in (8, 32)]
    records += [error(one, 1024, 0.5) for one in windows]
    records.append(error("linformer", 1024))
    (curves,) = tables(records).curves.values()
    law, without = curves
    assert (law.title, law.budget, law.rate) == ("performer", "features", 0.5)
    assert law.points == ((16.0, 1 / 16), (256.0, 1 / 256))
    assert (without.budget, without.rate) == ("left + right", None)
    assert [x for x, _ in without.points] == [16.0, 64.0]


def test_settings_that_are_no_budget_make_curves_of_their_own() -> None:
    relu = [mechanism("performer", features=n, kernel="relu") for n in (16, 64)]
    records = [performer(n, 256) for n in (16, 64)] + [error(one, 256) for one in relu]
    (curves,) = tables(records).curves.values()
    assert {(curve.title, curve.rate) for curve in curves} == {
        ("performer (kernel=softmax)", 0.5),
        ("performer (kernel=relu)", None),
    }


def test_the_law_is_a_dashed_line_from_the_first_point_named_in_the_legend() -> None:
    records = [performer(n, 256, 0.2, input_scale=scale) for n in (16, 256) for scale in (0.5, 1.0)]
    drawn = figure(tables(records))
    assert "declared law of performer: features^-0.5" in drawn.svg
    assert f"inputs {TIMES} 0.5" in drawn.svg and f"inputs {TIMES} 1" in drawn.svg
    dashed = re.findall(
        r'd="M ([\d.]+) ([\d.]+) \nL ([\d.]+) ([\d.]+) \n"[^>]*dasharray', drawn.svg
    )
    lines = [line for line in dashed if line[1] != line[3]]
    assert len(lines) == 2, "one in each panel, falling; the legend's own is level"
    records = [error(mechanism("linformer", rank=n), 256, 1 / n) for n in (16, 256)]
    assert "declared law" not in figure(tables(records)).svg


def test_one_budget_is_no_curve() -> None:
    assert error_figure(tables([performer(64, n) for n in (256, 1024)]), {}) is None


def test_the_answer_names_what_is_nearer_than_zeros_and_never_what_only_rounds() -> None:
    records = [performer(16, 256, 0.4), performer(64, 256, 0.2), error("sdpa", 256, 2e-7)]
    start = (
        f"Relative error of the output against exact softmax attention at length 256, inputs "
        f"{TIMES} 1: "
    )

    def alone(*records: Record) -> str:
        (sentence,) = error_sentences([tables([*records])])
        assert sentence.startswith(start)
        return sentence.removeprefix(start)

    def said(*more: Record) -> str:
        return alone(*records, *more)

    assert said() == "performer (features=64) 0.200."
    names = ("linformer", "bigbird", "nystromformer")
    near = [error(name, 256, 0.5) for name in names]
    assert said(*near) == (
        "all 4 approximations come nearer than an output of zeros (error 1): the nearest are "
        "performer (features=64) 0.200, bigbird 0.500 and linformer 0.500."
    )
    far = [error(name, 256, 1.5) for name in names]
    assert said(*far) == (
        "1 of 4 approximations comes nearer than an output of zeros (error 1): "
        "performer (features=64) 0.200."
    )
    assert said(near[0], *far[1:]) == (
        "2 of 4 approximations come nearer than an output of zeros (error 1): "
        "performer (features=64) 0.200 and linformer 0.500."
    )
    own = error("reformer", 256, 0.01, own_keys=True)
    assert said(own) == (
        "performer (features=64) 0.200. Not ranked, as measured against an exact result of its "
        "own: reformer."
    )
    assert alone(*far) == (
        "none of 3 approximations comes nearer than an output of zeros (error 1); nearest is "
        "bigbird 1.50."
    )
    assert alone(far[0]) == "linformer 1.50, no nearer than an output of zeros (error 1)."


def test_several_settings_are_told_apart_and_many_are_only_counted() -> None:
    def said(widths: int) -> list[str]:
        records = [performer(64, 256, head_width=8 * n) for n in range(1, widths + 1)]
        return error_sentences(error_tables(join(records, [])))

    starts = [sentence.partition(":")[0] for sentence in said(2)]
    assert starts == ["2 heads of width 8", "2 heads of width 16"]
    (counted,) = said(4)
    assert "at 4 settings" in counted


def test_errors_are_said_with_three_figures_or_as_powers() -> None:
    assert [ratio_text(x) for x in (0.0, 0.1234, 12.34, 2.44e-7, 54321.0)] == [
        "0",
        "0.123",
        "12.3",
        "2.4e-07",
        "5.4e+04",
    ]
    assert [ratio_text(x, most=2) for x in (0.1234, 2.44e-7)] == ["0.12", "2e-07"]


def test_a_page_has_the_section_beside_others(tmp_path: Path) -> None:
    records = [performer(n, 256) for n in (16, 64)] + [efficiency("performer", 512)]
    made = render(records, [], tmp_path, title="near")
    page, told = made.page.read_text(encoding="utf-8"), (tmp_path / "report.md").read_text("utf-8")
    assert '<section id="error">' in page
    assert "## Error" in told and "plots/error-1.svg" in told
    assert (tmp_path / "plots/error-1.svg").is_file()
    assert "output_error" in (tmp_path / "report.csv").read_text("utf-8")
    alone = render(records[:2], [], tmp_path / "alone", title="near")
    assert "features=16" in alone.findings.table
    assert "exact softmax" in alone.findings.headline[0]


def _scaled(features: int, law: dict[float, float]) -> list[Record]:
    """Errors of 0.1 to 1.6 at four scales, with what is predicted where `law` has it."""
    records = []
    for place, scale in enumerate((0.25, 0.5, 1.0, 2.0)):
        made = performer(features, 1024, 0.1 * 2**place, input_scale=scale)
        said = {"predicted_error": law[scale]} if scale in law else {}
        records.append(msgspec.structs.replace(made, method={**made.method, **said}))
    return records


def test_the_error_by_input_scale_is_of_the_largest_budget_with_its_law_below_1() -> None:
    small = _scaled(64, {0.25: 0.5})
    one = tables([*small, *_scaled(256, {0.25: 0.09, 0.5: 0.3, 1.0: 27.0}), *_exact(2e-7)])
    (curve,) = one.by_scale
    assert curve.row.label == "performer (features=256)"
    assert curve.points == ((0.25, 0.1), (0.5, 0.2), (1.0, 0.4), (2.0, 0.8))
    assert curve.law == ((0.25, 0.09), (0.5, 0.3))


def _exact(output: float) -> list[Record]:
    return [error("sdpa", 1024, output, input_scale=scale) for scale in (0.5, 1.0)]


def test_a_scale_without_a_figure_or_alone_makes_no_point_and_no_curve() -> None:
    lost = performer(64, 1024, input_scale=4.0, status="oom")
    (curve,) = tables([*_scaled(64, {}), lost]).by_scale
    assert [scale for scale, _ in curve.points] == [0.25, 0.5, 1.0, 2.0] and curve.law == ()
    assert tables([performer(64, 1024)]).by_scale == ()


def test_the_figure_by_input_scale_names_the_law_only_where_there_is_one() -> None:
    def drawn(records: list[Record]) -> Figure | None:
        one = tables(records)
        known = looks((c.row.mechanism, c.row.variant) for c in one.by_scale)
        return error_scale_figure(one, known)

    with_law, without = drawn(_scaled(64, {0.25: 0.09, 0.5: 0.3})), drawn(_scaled(64, {}))
    assert with_law is not None and without is not None
    assert "predicted: performer" in with_law.svg and "predicted" not in without.svg
    assert "to first order" in with_law.caption and "first order" not in without.caption
    assert "length 1024" in with_law.title
    assert drawn([performer(64, 1024)]) is None
    report, _ = assemble(join(_scaled(64, {}), []), "near")
    (section,) = [section for section in report.sections if section.id == "error"]
    assert [figure.id for figure in section.figures] == ["error-scale-1"]


def test_a_scale_is_named_only_where_nothing_else_tells_settings_apart() -> None:
    def sections(*records: Record) -> list[str]:
        return sorted(one.section for one in error_tables(join([*records], [])))

    def of(scale: str, **more: object) -> Record:
        made = performer(64, 256, **more)
        cell = msgspec.structs.replace(made.cell, scale=scale)
        return msgspec.structs.replace(made, cell=cell, id=cell.id)

    wide = of("small", head_width=64)
    assert sections(of("mini"), wide) == [
        "Error: 2 heads of width 32",
        "Error: 2 heads of width 64",
    ]
    assert sections(of("mini"), of("small")) == ["Error: scale mini", "Error: scale small"]
