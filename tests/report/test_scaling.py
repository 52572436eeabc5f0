"""Tables of time and memory by length."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from lra.core.protocol import Machine
from lra.core.records import Metric, Record
from lra.report.cost_titles import short_titles, titles
from lra.report.model import Table, Value
from lra.report.sections import scaling
from lra.report.words import TIMES
from report.sample import GPU, HERE, MODEL, THERE, edited, efficiency, with_metrics
from report.sweeps import LENGTHS, OLD, analysed, ended, exact, swept, tables, value
from report.sweeps import titles as rows_of


@pytest.fixture(autouse=True)
def no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """The plots have tests of their own."""
    for name in ("cost_figure", "crossover_figure"):
        monkeypatch.setattr(scaling, name, lambda *_: None)


def found(records: Sequence[Record], reference: Sequence[Record] = ()) -> dict[str, Table]:
    return tables(scaling.sections(analysed(records, reference)))


def times(records: Sequence[Record], reference: Sequence[Record] = ()) -> Table:
    return found(records, reference)["time-forward-1"]


def test_a_place_is_the_median_and_the_multiple_of_exact_attention_at_its_length() -> None:
    table = times(
        [
            efficiency("performer", 512, seconds=0.003),
            efficiency("sdpa", 512, seconds=0.002),
            efficiency("performer", 1024, seconds=0.006),
            efficiency("sdpa", 1024, seconds=0.012),
        ]
    )
    assert (table.title, table.columns) == ("Time of a forward pass, in ms", ("512", "1024"))
    assert rows_of(table) == ["performer", "sdpa"]
    assert value(table, "performer", "512") == Value("3.00", f"1.5{TIMES}", 0.003)
    assert value(table, "performer", "1024").note == f"0.50{TIMES}"
    assert value(table, "sdpa", "512") == Value("2.00", "", 0.002)


def test_exact_attention_out_of_memory_leaves_every_other_row_whole() -> None:
    others = [efficiency(name, n) for name in ("performer", "linear") for n in (512, 1024)]
    table = times([*others, efficiency("sdpa", 512), efficiency("sdpa", 1024, status="oom")])
    assert value(table, "sdpa", "1024") == Value("OOM")
    for name in ("performer", "linear"):
        assert value(table, name, "512").note == f"1.0{TIMES}"
        assert (value(table, name, "1024").text, value(table, name, "1024").note) == ("10.0", "")
    assert any("1024 (OOM)" in note for note in table.notes)
    (note,) = times([efficiency("performer", 512)]).notes
    assert "512 (not run)" in note


def test_rows_without_any_figure_are_named_below_unless_all_are() -> None:
    lost = ended("far", "unsupported", *LENGTHS)
    table = found([*swept("a", lambda n: n), *exact(), *lost])["time-train-1"]
    assert rows_of(table) == ["a", "sdpa"]
    assert "far (unsupported)" in table.notes[0]
    alone = found(lost)["time-train-1"]
    assert rows_of(alone) == ["far"] and value(alone, "far", "256") == Value("unsupported")
    # Two different endings are told one by one.
    mixed = [*ended("b", "oom", 8192), *ended("b", "timeout", *LENGTHS[:-1])]
    table = found([*swept("a", lambda n: n), *exact(), *mixed])["time-train-1"]
    assert value(table, "b", "8192") == Value("OOM") and len(rows_of(table)) == 3


def test_growth_what_is_declared_and_the_crossover_stand_in_the_same_table() -> None:
    declared = ("O(n d)", "O(n)")
    own = swept("a", lambda n: 1900.0 * n, width=0.0, declared=declared)
    table = found([*own, *exact(width=0.0)])["time-train-1"]
    assert table.columns[-3:] == ("growth", "declared", "pays from")
    assert value(table, "a", "growth").text == "1.00"
    assert value(table, "a", "declared").text == "1"
    assert value(table, "a", "pays from").number == pytest.approx(1900)
    assert value(table, "sdpa", "pays from") == Value("")
    # Two lengths have none.
    assert times([efficiency("a", n) for n in (256, 512)]).columns == ("256", "512")


def test_lengths_and_rows_that_few_were_tried_at_stand_apart() -> None:
    records = [*swept("a", lambda n: n), *swept("b", lambda n: n), *exact()]
    few = [*swept("c", lambda n: n, lengths=(3000, 8192)), *swept("a", lambda n: n, lengths=[3000])]
    analysis = analysed([*records, *few])
    known = tables(scaling.sections(analysis))
    assert known["time-train-1"].columns[:6] == tuple(map(str, LENGTHS))
    assert rows_of(known["time-train-1"]) == ["a", "b", "sdpa"]
    other = known["time-train-1-few"]
    assert (rows_of(other), other.columns) == (["a", "c"], ("3000", "8192"))
    assert value(other, "a", "8192").number == pytest.approx(8192e-9)


def test_two_machine_classes_never_share_a_table() -> None:
    here = [efficiency(name, 512, seconds=0.01) for name in ("performer", "sdpa")]
    there = [efficiency(n, 512, seconds=0.001, machine=THERE) for n in ("linear", "sdpa")]
    known = found(here, there)
    assert rows_of(known["time-forward-1"]) == ["performer", "sdpa"]
    assert rows_of(known["time-forward-2"]) == ["linear (reference)", "sdpa (reference)"]
    ours, theirs = scaling.sections(analysed(here, there))
    assert "Example CPU 9000, 2 cores" in ours.setting and "Other CPU 1" in theirs.setting
    three = scaling.sections(
        analysed([efficiency("performer", 512, machine=m) for m in (HERE, THERE, GPU)])
    )
    assert len({section.setting for section in three}) == 3


@pytest.mark.parametrize(
    "change",
    [
        {"dtype": "bfloat16"},
        {"batch": 8},
        {"heads": 2},
        {"head_width": 32},
        {"level": "attention"},
        {"direction": "causal"},
        {"execution": "compiled"},
        {"measure": 2},
        {"torch": "2.12.0"},
        {"threads": 1},
    ],
)
def test_other_sizes_and_other_profilers_are_other_tables(change: dict[str, object]) -> None:
    known = analysed([efficiency("sdpa", 512), efficiency("linear", 512, **change)]).costs.settings
    assert len(known) == 2
    assert len({*titles(known).values()}) == len({*short_titles(known).values()}) == 2


def test_other_models_are_other_tables_named_by_what_differs() -> None:
    deep = msgspec.structs.replace(MODEL, layers=8, dropout=0.1)
    # A shipped scale has a model of its own that these would be compared with too.
    whole = {"level": "model", "task": "text", "scale": "mine"}
    records = [efficiency("sdpa", 512, model=model, **whole) for model in (MODEL, deep)]
    named = titles(analysed([*records, efficiency("sdpa", 512)]).costs.settings)
    words = ("dropout=0.0, layers=2", "dropout=0.1, layers=8")
    assert [sum(text in name for name in named.values()) for text in words] == [1, 1]
    (alone,) = titles(analysed(records[:1]).costs.settings).values()
    assert "layers=" not in alone


def test_ratios_of_reference_rows_are_to_their_own_run_and_an_edit_stands_beside_its_own() -> None:
    run = [efficiency("performer", 512, seconds=0.02), efficiency("sdpa", 512, seconds=0.04)]
    reference = [
        efficiency("linear", 512, seconds=0.02, started=OLD),
        efficiency("sdpa", 512, seconds=0.01, started=OLD),
    ]
    known = found(run, reference)
    assert rows_of(known["time-forward-1"]) == ["performer", "sdpa"]
    table = known["time-forward-1-all"]
    assert value(table, "performer", "512").note == f"0.50{TIMES}"
    assert value(table, "linear (reference)", "512").note == f"2.0{TIMES}"
    assert rows_of(table) == ["performer", "sdpa", "linear (reference)"]
    run = [efficiency(edited("performer"), 512), efficiency("sdpa", 512)]
    table = times(run, [efficiency("performer", 512)])
    assert rows_of(table) == ["performer", "sdpa", "performer (reference)"]


def test_digits_stop_at_the_spread_and_wide_quartiles_are_marked() -> None:
    widths = {"a": 0.01, "b": 0.09, "c": 0.3}
    records = [efficiency(name, 512, seconds=0.012345, width=w) for name, w in widths.items()]
    table = times(records)
    assert [value(table, name, "512").text for name in "abc"] == ["12.3", "12", "~12"]
    (section,) = scaling.sections(analysed(records))
    assert "~:" in section.text[0]
    (section,) = scaling.sections(analysed(records[:2]))
    assert "~:" not in section.text[0]


def timed(name: str, length: int, *seconds: float) -> list[Record]:
    return [efficiency(name, length, seconds=s, replicate=n) for n, s in enumerate(seconds)]


def test_replicates_give_their_median() -> None:
    table = times(timed("a", 512, 0.010, 0.011, 0.030))
    assert value(table, "a", "512").number == 0.011
    assert value(table, "a", "512").text == "11"


def bold(*records: Record) -> list[tuple[str, str]]:
    table = times(records)
    return [
        (row.label, column)
        for row in table.rows
        for column in table.columns
        if value(table, row.title, column).best
    ]


def test_the_fastest_is_bold_where_its_processes_lie_apart_and_the_floor_never() -> None:
    assert bold(
        *timed("identity", 512, 0.001, 0.001),
        *timed("linear", 512, 0.005, 0.006),
        *timed("sdpa", 512, 0.010, 0.011),
        *timed("identity", 1024, 0.001, 0.001),
        *timed("linear", 1024, 0.0100, 0.0102),
        *timed("sdpa", 1024, 0.0101, 0.0103),
    ) == [("linear", "512")]
    # The next by its median is not the only one to be apart from.
    near, wide = timed("sdpa", 512, 0.02, 0.02, 0.02), timed("wide", 512, 0.004, 0.03, 0.03)
    assert bold(*timed("a", 512, 0.005, 0.005, 0.006), *near) == [("a", "512")]
    assert bold(*timed("a", 512, 0.005, 0.005, 0.006), *near, *wide) == []


def test_of_one_process_and_of_some_processes_nothing_is_bold() -> None:
    slow = timed("sdpa", 512, 0.1, 0.1)
    assert bold(*timed("a", 512, 0.001, 0.001), *slow) == [("a", "512")]
    assert bold(*timed("a", 512, 0.001), *slow) == []
    assert bold(*timed("a", 512, 0.001, 0.001), *slow[:1]) == []
    lost = efficiency("a", 512, status="timeout", replicate=2)
    assert bold(*timed("a", 512, 0.001, 0.001), lost, *slow) == []


def test_a_figure_of_some_replicates_says_of_how_many_and_how_the_others_ended() -> None:
    lost = [efficiency("a", 512, status="timeout", replicate=n) for n in (1, 2)]
    table = times([*timed("a", 512, 0.01), *lost, *timed("sdpa", 512, 0.02, 0.02, 0.02)])
    assert value(table, "a", "512").line == f"10.0 (0.50{TIMES}; 1 of 3: timeout)"


@pytest.mark.parametrize(("machine", "word"), [(HERE, "resident"), (GPU, "live tensors")])
def test_memory_is_resident_on_a_cpu_and_of_tensors_on_a_gpu(machine: Machine, word: str) -> None:
    records = [
        efficiency(name, 512, memory=size, machine=machine)
        for name, size in (("a", 50e6), ("sdpa", 1e8))
    ]
    table = found(records)["memory-forward-1"]
    assert table.title == "Peak memory of a forward pass, in MB" and any(
        word in text for text in table.legend
    )
    assert value(table, "a", "512") == Value("50.0", f"0.50{TIMES}", 50e6)


def test_a_gap_is_a_word_with_its_reason_below_and_the_other_cost_stays() -> None:
    known = found([efficiency("a", 512, memory=None), efficiency("b", 512)])
    assert value(known["memory-forward-1"], "b", "512").text == "50.0"
    assert known["memory-forward-1"].notes[:2] == (
        "Without a figure: a (not measured).",
        "Not measured: no counter.",
    )
    known = found([efficiency("a", 512, seconds=None)])
    assert value(known["time-forward-1"], "a", "512") == Value("not measured")
    assert "not in the record" in known["time-forward-1"].notes[0]
    assert value(known["memory-forward-1"], "a", "512").text == "50.0"


def test_the_control_says_whether_the_machine_held_still_in_cells_of_both_origins() -> None:
    """A cell measured again has the id of the committed one."""
    (section,) = scaling.sections(analysed([efficiency("a", 512)]))
    assert "1.02 ms, up to 4 % apart" in section.text[0]
    drifted = with_metrics(efficiency("sdpa", 512), control_after=1.5e-3)
    quiet = [efficiency("sdpa", n, started=OLD) for n in (512, 1024)]
    assert drifted.id == quiet[0].id
    (section,) = scaling.sections(analysed([drifted, efficiency("a", 1024)], quiet))
    assert "up to 50 % apart" in section.text[0]


def test_a_busy_timing_is_marked_and_so_is_a_multiple_of_one_but_no_size() -> None:
    records = [efficiency(name, n) for name in ("a", "sdpa") for n in (512, 1024)]
    records[2] = with_metrics(records[2], control_after=5e-3)
    known = found(records)
    assert value(known["time-forward-1"], "sdpa", "512").disturbed
    busy, quiet = (value(known["time-forward-1"], "a", n) for n in ("512", "1024"))
    assert (busy.note, busy.disturbed, quiet.note) == (f"!1.0{TIMES}", False, f"1.0{TIMES}")
    assert not value(known["memory-forward-1"], "sdpa", "512").disturbed


@pytest.mark.parametrize(
    ("machine", "mode", "dropout", "fused"),
    [
        (HERE, "train", 0.1, False),
        (HERE, "train", 0.0, True),
        (HERE, "forward", 0.1, True),
        (GPU, "train", 0.1, True),
    ],
)
def test_exact_attention_is_called_fused_only_where_it_is(
    machine: Machine, mode: str, dropout: float, fused: bool
) -> None:
    model = msgspec.structs.replace(MODEL, attention_dropout=dropout)
    whole = {"level": "model", "task": "text", "scale": "mine", "model": model, "machine": machine}
    (section,) = scaling.sections(analysed([efficiency("sdpa", 512, mode, **whole)]))
    assert ("exact attention, fused" in section.text[0]) == fused
    assert ("no fused kernel" in section.text[0]) != fused


@pytest.mark.parametrize("coarse", ["sdpa", "linear"])
def test_a_time_of_nothing_is_no_figure_and_nothing_is_divided_by_it(coarse: str) -> None:
    """As of a clock that is too coarse for the call."""
    lengths = (1000, 2000, 3000, 4000)
    records = [
        efficiency(name, n, "train", 0.0 if name == coarse and n < 4000 else 0.01)
        for name in ("sdpa", "linear")
        for n in lengths
    ]
    table = found(records)["time-train-1"]
    texts = [value(table, coarse, str(n)).text for n in lengths]
    assert texts == ["not measured"] * 3 + ["10.0"]
    assert any("0 s by a clock that is too coarse" in note for note in table.notes)
    assert value(table, "linear", "pays from").text == ">4,000"


def test_calls_of_one_number_of_positions_share_a_table_per_example() -> None:
    tokens, lengths = 4096, (512, 1024, 2048, 4096)

    def call(length: int, batch: int) -> Record:
        return efficiency("sdpa", length, seconds=1e-3 * length, batch=batch)

    joined = [call(n, tokens // n) for n in lengths]
    table = times(joined)
    # A second for 1,000 calls of length 1,000, by the number of examples in each.
    values = [value(table, "sdpa", str(n)).number for n in lengths]
    assert values == pytest.approx([1e-3 * n * n / tokens for n in lengths])
    # One example as long as that stands in both tables.
    known = found([*joined, *(call(n, 1) for n in (1024, 2048))])
    lengths_of = [[c for c in table.columns if c.isdigit()] for table in known.values()]
    assert sorted(lengths_of) == 2 * [["1024", "2048", "4096"]] + 2 * [[*map(str, lengths)]]
    grid = analysed([call(n, b) for n in lengths[:3] for b in (1, 2, 4)])
    assert [setting.tokens for setting in grid.costs.settings] == [None] * 3


def test_a_reason_that_a_size_is_too_small_is_told_once() -> None:
    why = "below 0.26 MB, which the system's counting can tell"
    small = [efficiency(name, n) for name in ("a", "b") for n in (512, 1024)]
    gap = {"peak_resident_bytes": Metric(value=None, unit="B", why_null=why)}
    records = [msgspec.structs.replace(r, metrics={**r.metrics, **gap}) for r in small[:3]]
    table = found([*records, small[3]])["memory-forward-1"]
    assert sum(why in note for note in table.notes) == 1
    assert value(table, "b", "512") == Value("not measured")
