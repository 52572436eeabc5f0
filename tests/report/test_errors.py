"""Errors of approximations: means over seeds, budgets in order, curves with their laws."""

from __future__ import annotations

import re

import msgspec
import pytest

from lra.core.records import Record
from lra.report.errors import Errors, errors
from lra.report.model import Table, Value
from lra.report.plots.error import budget_figure, scale_figure
from lra.report.plots.style import Looks
from lra.report.sections.error import ratio_text, sections, sentences
from lra.report.sections.headline import terminal_summary
from lra.report.words import TIMES
from report.analysed import analysed, recast, texts, values
from report.sample import THERE, efficiency, error, mechanism


def performer(features: int, length: int, output: float | None = 0.1, **fields: object) -> Record:
    own = mechanism("performer", features=features, kernel="softmax")
    return error(own, length, output, rate=0.5, **fields)


def only(*records: Record, reference: tuple[Record, ...] = ()) -> Errors:
    (one,) = errors(analysed(records, reference).evidence)
    return one


def table(*records: Record, reference: tuple[Record, ...] = (), place: int = 0) -> Table:
    *_, section = sections(analysed(records, reference))
    return section.tables[place]


def test_a_place_is_the_mean_over_seeds_and_gradients_are_at_the_longest_length() -> None:
    made = [performer(64, n, v, seed=s) for n in (256, 1024) for s, v in enumerate((0.1, 0.3))]
    row = values(table(*made), "performer")
    assert list(row) == ["256", "1,024", "gradient, q", "gradient, k", "gradient, v"]
    assert row["256"] == Value("0.20", "", pytest.approx(0.2))
    assert [value.number for value in row.values()] == pytest.approx([0.2, 0.2, 0.4, 0.6, 0.8])
    assert table(*made).notes[0] == "Means of 2 seeds, up to 100 % of the mean apart."
    assert table(performer(64, 256)).notes[0] == "One seed each."


def test_rows_are_budgets_in_order_and_exact_attention_comes_last() -> None:
    records = [performer(n, 256) for n in (1024, 64, 256)]
    records += [error("sdpa", 256, 2e-7), error("linformer", 256)]
    budgets = [f"performer (features={n})" for n in (64, 256, 1024)]
    assert [row.label for row in table(*records).rows] == ["linformer", *budgets, "sdpa"]


def test_one_input_scale_is_shown_whole_and_the_others_at_the_longest_length() -> None:
    records = [performer(64, n, s / n, input_scale=s) for n in (256, 1024) for s in (2.0, 0.5, 1.0)]
    (section,) = sections(analysed(records))
    whole, others = section.tables
    assert whole.title.endswith(f"{TIMES} 1") and whole.columns[:2] == ("256", "1,024")
    assert others.columns == (f"{TIMES} 0.5", f"{TIMES} 2")
    assert [v.number for v in others.rows[0].values] == pytest.approx([0.5 / 1024, 2 / 1024])
    # Without the scale 1 the smallest stands for the others.
    assert only(*records[::3], *records[1::3]).scale == 0.5
    assert len(sections(analysed([performer(64, 256)]))[0].tables) == 1


def test_each_setting_of_sizes_has_a_section_told_by_its_scale_where_nothing_else_differs() -> None:
    def of(*changes: dict[str, object]) -> list[str]:
        records = [recast(performer(64, 256), **one) for one in changes]
        return [section.setting for section in sections(analysed(records))]

    wide = of({}, {"head_width": 64})
    assert wide == [
        f"bidirectional, batch 1, 2 heads of width {w}, float32 on cpu" for w in (32, 64)
    ]
    assert [one.rpartition(", ")[2] for one in of({}, {"scale": "small"})] == [
        "scale mini",
        "scale small",
    ]


@pytest.mark.parametrize(
    ("status", "word"), [("oom", "OOM"), ("unsupported", "unsupported"), ("error", "error")]
)
def test_a_cell_without_a_figure_is_a_word_and_counts_in_no_mean(status: str, word: str) -> None:
    found = table(performer(64, 256, seed=0), performer(64, 256, seed=1, status=status))
    assert texts(found)["performer"][0].startswith(word)
    assert found.rows[0].values[0].number is None


def test_a_figure_that_is_no_number_has_its_reason() -> None:
    value = table(performer(64, 256, None)).rows[0].values[0]
    assert (value.text, value.note) == ("not measured", "it is nan")


def test_a_newer_record_replaces_an_older_one_and_a_reference_stands_beside_the_run() -> None:
    old = performer(64, 256, 0.9, started="2026-11-01T00:00:00Z", measure=9)
    new = performer(64, 256, 0.1)
    found = table(old, new, reference=(error("linformer", 256, machine=THERE),))
    assert texts(found)["performer"][0] == "0.10"
    assert [row.title for row in found.rows] == ["performer", "linformer (reference)"]
    near, _ = sections(analysed([new], [error("linformer", 256, machine=THERE)]))
    assert [row.title for row in near.tables[0].rows] == ["performer"]


def test_a_mean_is_of_one_version_of_torch_and_of_no_machine_twice() -> None:
    old = [performer(64, 256, 0.9, seed=s, torch="2.12.0") for s in range(3)]
    old += [performer(64, 256, status="oom", seed=0, machine=THERE, torch="2.12.0")]
    new = [performer(64, 256, 0.1 + s, seed=s, started=f"2026-11-21T0{s}:00:00Z") for s in range(2)]
    elsewhere = performer(64, 256, 0.3, seed=1, started="2026-11-22T00:00:00Z", machine=THERE)
    analysis = analysed([*old, *new, elsewhere])
    (one,) = errors(analysis.evidence)
    found = one.output(one.keys[0], 1.0, 256)
    assert found is not None and (found.mean, found.n) == (pytest.approx(0.2), 2)
    assert analysis.evidence.superseded == 5


def test_curves_are_budgets_of_one_mechanism_at_the_longest_length() -> None:
    records = [performer(n, length, 1 / n) for n in (256, 16) for length in (256, 1024)]
    windows = [mechanism("sliding_window", left=n, right=n) for n in (8, 32)]
    records += [error(one, 1024, 0.5) for one in windows]
    law, without = only(*records, error("linformer", 1024)).budgets
    assert (law.title, law.budget, law.rate) == ("performer", "features", 0.5)
    assert law.points == ((16.0, 1 / 16), (256.0, 1 / 256))
    assert (without.budget, without.rate) == ("left + right", None)
    assert [x for x, _ in without.points] == [16.0, 64.0]
    assert only(*(performer(64, n) for n in (256, 1024))).budgets == ()


def test_settings_that_are_no_budget_make_curves_of_their_own() -> None:
    relu = [mechanism("performer", features=n, kernel="relu") for n in (16, 64)]
    curves = only(
        *(performer(n, 256) for n in (16, 64)), *(error(one, 256) for one in relu)
    ).budgets
    assert {(curve.title, curve.rate) for curve in curves} == {
        ("performer (kernel=softmax)", 0.5),
        ("performer (kernel=relu)", None),
    }


def test_a_law_is_that_of_its_own_origin_and_of_its_own_budget() -> None:
    budgets = [mechanism("performer", features=n) for n in (16, 64)]
    there = tuple(error(one, 256, rate=0.5, started="2026-11-01T00:00:00Z") for one in budgets)
    curves = only(*(error(one, 256) for one in budgets), reference=there).budgets
    assert {(curve.key.origin, curve.rate) for curve in curves} == {("run", None)}
    both = [mechanism("performer", features=n, redraw=r) for n, r in ((16, 1), (64, 2))]
    (mixed,) = only(*(error(one, 256, rate=0.5) for one in both)).budgets
    assert (mixed.budget, mixed.rate) == ("features + redraw", None)


def _scaled(features: int, law: dict[float, float]) -> list[Record]:
    """Errors of 0.1 to 0.8 at four scales, with what is predicted where `law` has it."""
    records = []
    for place, scale in enumerate((0.25, 0.5, 1.0, 2.0)):
        made = performer(features, 1024, 0.1 * 2**place, input_scale=scale)
        said = {"predicted_error": law[scale]} if scale in law else {}
        records.append(msgspec.structs.replace(made, method={**made.method, **said}))
    return records


def test_the_error_by_input_scale_is_of_the_largest_budget_with_its_law_below_1() -> None:
    small, large = _scaled(64, {0.25: 0.5}), _scaled(256, {0.25: 0.09, 0.5: 0.3, 1.0: 27.0})
    rounds = [error("sdpa", 1024, 2e-7, input_scale=scale) for scale in (0.5, 1.0)]
    (curve,) = only(*small, *large, *rounds).by_scale
    assert curve.key.label == "performer (features=256)"
    assert curve.points == ((0.25, 0.1), (0.5, 0.2), (1.0, 0.4), (2.0, 0.8))
    assert curve.law == ((0.25, 0.09), (0.5, 0.3))


def test_a_scale_without_a_figure_or_alone_makes_no_point_and_no_curve() -> None:
    lost = performer(64, 1024, input_scale=4.0, status="oom")
    (curve,) = only(*_scaled(64, {}), lost).by_scale
    assert [scale for scale, _ in curve.points] == [0.25, 0.5, 1.0, 2.0] and curve.law == ()
    assert only(performer(64, 1024)).by_scale == ()
    # A smaller budget with more scales stands for nobody.
    more = performer(16, 1024, 0.7, input_scale=4.0)
    (curve,) = only(*_scaled(64, {}), more).by_scale
    assert curve.key.label == "performer (features=64)"


def test_laws_are_dashed_lines_that_are_named() -> None:
    figure = budget_figure(only(*(performer(n, 256, 0.2) for n in (16, 256))), Looks())
    assert figure is not None and "law of performer: budget^-0.5" in figure.svg
    pattern = r'd="M ?[\d.]+ ([\d.]+)\s*L ?[\d.]+ ([\d.]+)\s*"[^>]*dasharray'
    falling = [y for y in re.findall(pattern, figure.svg) if y[0] != y[1]]
    assert len(falling) == 1, "the name's own piece of line is level"
    plain = only(*(error(mechanism("linformer", rank=n), 256, 1 / n) for n in (16, 256)))
    without = budget_figure(plain, Looks())
    assert without is not None and "law of" not in without.svg
    assert budget_figure(only(performer(64, 256)), Looks()) is None
    by_scale = scale_figure(only(*_scaled(64, {0.25: 0.09, 0.5: 0.3})), Looks())
    assert by_scale is not None and "predicted: performer" in by_scale.svg
    bare = scale_figure(only(*_scaled(64, {})), Looks())
    assert bare is not None and "predicted" not in bare.svg
    assert scale_figure(only(performer(64, 1024)), Looks()) is None


def test_keys_of_its_own_are_told_and_make_it_nearest_to_nobody_elses_softmax() -> None:
    own = error("reformer", 256, 0.01, own_keys=True)
    # A cell that failed last says nothing of keys.
    failed = error("reformer", 256, status="timeout", seed=1)
    records = [own, failed, error("linformer", 256, 0.5)]
    assert only(*records).own_keys == ("reformer",)
    assert any(note.startswith("reformer is compared") for note in table(*records).notes)
    assert only(error("linformer", 256)).own_keys == ()
    (sentence,) = sentences(analysed([own, records[-1]]))
    assert "linformer 0.50" in sentence and "reformer" not in sentence


def _said(*records: Record) -> str:
    (sentence,) = sentences(analysed(records))
    return sentence.rpartition(": ")[2]


def test_sentences_name_what_is_nearer_than_zeros_and_never_what_only_rounds() -> None:
    records = [performer(16, 256, 0.4), performer(64, 256, 0.2), error("sdpa", 256, 2e-7)]
    assert _said(*records) == "performer (features=64) 0.20."
    names = ("linformer", "bigbird", "nystromformer")
    near = [error(name, 256, 0.5 + n / 10) for n, name in enumerate(names)]
    far = [error(name, 256, 1.5 + n) for n, name in enumerate(names)]
    assert _said(*records, *near).startswith("4 of 4 approximations nearer")
    assert _said(*records, *near).endswith(
        "nearest performer (features=64) 0.20, linformer 0.50 and bigbird 0.60."
    )
    mixed = _said(*records, near[0], *far[1:])
    assert mixed.startswith("2 of 4 approximations nearer")
    assert mixed.endswith("nearest performer (features=64) 0.20 and linformer 0.50.")
    assert _said(*far).startswith("0 of 3 approximations")
    assert _said(*far).endswith("nearest linformer 1.5.")


def test_several_settings_are_told_apart_and_many_are_only_counted() -> None:
    def starts(widths: int) -> list[str]:
        records = [performer(64, 256, head_width=8 * n) for n in range(1, widths + 1)]
        return [sentence.partition(":")[0] for sentence in sentences(analysed(records))]

    assert starts(2) == ["2 heads of width 8", "2 heads of width 16"]
    (counted,) = starts(4)
    assert "at 4 settings" in counted
    assert sentences(analysed([], [performer(64, 256)])) == []


def test_errors_have_two_figures_three_where_seeds_support_them_or_are_powers() -> None:
    numbers = (0.0, 0.1234, 12.34, 2.44e-7, 54321.0)
    assert [ratio_text(x) for x in numbers] == ["0", "0.12", "12", "2.4e-07", "5.4e+04"]
    assert [ratio_text(0.1234, spread) for spread in (1e-4, 0.02)] == ["0.123", "0.12"]


def test_a_store_with_errors_alone_has_them_in_its_headline_and_terminal() -> None:
    told, table = terminal_summary(analysed([performer(n, 256) for n in (16, 64)]))
    assert "exact softmax attention" in told[0] and "features=16" in table
    timed, _ = terminal_summary(analysed([performer(16, 256), efficiency("sdpa", 512, "train")]))
    assert not any("softmax attention" in sentence for sentence in timed)
