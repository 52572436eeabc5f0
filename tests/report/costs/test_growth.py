"""The table of fitted exponents, beside what mechanisms declare."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from lra.report.costs.tables import efficiency_tables
from lra.report.select import Selection, join
from lra.report.table import Cell, Table

from lra.core.records import Record
from lra.report.assemble import assemble
from report.sample import GPU, MODEL, THERE, efficiency

LENGTHS = (256, 512, 1024, 2048, 4096)
LINEAR = ("O(n d)", "O(n d)")


def swept(
    name: str,
    power: float,
    *,
    mode: str = "train",
    lengths: tuple[int, ...] = LENGTHS,
    replicates: int = 1,
    noise: float = 0.0,
    declared: tuple[str, str] | None = LINEAR,
    room: float = 1.0,
    **fields: Any,
) -> list[Record]:
    """Time grows as length to the `power`, memory to `room`."""
    rng = np.random.default_rng(len(name) + replicates)
    return [
        efficiency(
            name,
            n,
            mode,
            1e-6 * n**power * float(np.exp(noise * rng.normal())),
            1e3 * n**room,
            replicate=replicate,
            declared=declared,
            **fields,
        )
        for replicate in range(replicates)
        for n in lengths
    ]


def _table(records: list[Record], selection: Selection | None = None) -> Table:
    (tables,) = efficiency_tables(selection or join(records, []))
    assert tables.growth is not None
    return tables.growth


def _cell(table: Table, row: str, column: str) -> Cell:
    found = next(r for r in table.rows if r.label == row)
    return found.cells[table.columns.index(column)]


def test_a_row_has_exponents_intervals_and_what_is_declared() -> None:
    table = _table(
        [*swept("full", 2.0, declared=("O(n m d)", "O(n m)"), room=2.0), *swept("linear", 1.0)]
    )
    assert table.columns == ("time, train", "memory, train", "declared", "against the claim")
    assert _cell(table, "full", "time, train").text == "2.00"
    assert _cell(table, "full", "time, train").note == "2.00 to 2.00; end 2.00"
    assert _cell(table, "full", "memory, train").text == "2.00"
    assert _cell(table, "full", "declared") == Cell("n^2, memory n^2", "O(n m d); O(n m)")
    assert _cell(table, "linear", "declared").text == "n^1, memory n^1"
    assert _cell(table, "linear", "against the claim") == Cell("no faster growth shown")


def test_every_mode_has_its_time_but_decoding_and_memory_is_of_training() -> None:
    modes = ("forward", "train", "decode")
    table = _table([record for mode in modes for record in swept("a", 1.0, mode=mode)])
    assert table.columns[:-2] == ("time, forward", "time, train", "memory, train")
    table = _table(swept("a", 1.0, mode="forward"))
    assert table.columns[:-2] == ("time, forward", "memory, forward")


def test_one_that_grows_faster_than_it_claims_is_flagged_with_the_column() -> None:
    records = [
        *swept("slow", 2.0, replicates=3, noise=0.03),
        *swept("honest", 1.0, replicates=3, noise=0.03),
        *swept("heavy", 1.0, room=1.5),
    ]
    table = _table(records)
    said = "claims linear, grows faster"
    assert _cell(table, "slow", "against the claim") == Cell(said, "time, train")
    assert _cell(table, "honest", "against the claim") == Cell("no faster growth shown")
    assert _cell(table, "heavy", "against the claim") == Cell(said, "memory, train")


@pytest.mark.parametrize(
    ("claim", "power", "word"),
    [
        ("O(n m d)", 2.5, "claims quadratic, grows faster"),
        ("O(n sqrt(n) d)", 2.0, "claims n^1.5, grows faster"),
        ("O(1)", 1.5, "claims constant, grows faster"),
        ("O(1)", 1.0, "no faster growth shown"),
        ("O(n d)", 1.1, "no faster growth shown"),
        ("O(n d)", 0.5, "no faster growth shown"),
    ],
)
def test_the_claim_is_told_in_words_and_less_than_linear_is_never_asked(
    claim: str, power: float, word: str
) -> None:
    table = _table(swept("a", power, declared=(claim, "O(n)")))
    assert _cell(table, "a", "against the claim").text == word


def test_an_interval_that_reaches_the_claim_flags_nothing() -> None:
    crooked = [
        efficiency("a", n, "train", seconds, declared=LINEAR)
        for n, seconds in ((256, 1e-3), (512, 1.2e-3), (1024, 9e-3))
    ]
    table = _table(crooked)
    assert float(_cell(table, "a", "time, train").text) > 1.5
    assert _cell(table, "a", "against the claim").text == "no faster growth shown"


def test_records_that_declare_nothing_are_not_available() -> None:
    table = _table(swept("a", 2.0, declared=None))
    assert _cell(table, "a", "declared") == Cell("n/a")
    assert _cell(table, "a", "against the claim") == Cell("n/a")
    assert "n/a: the record has no formula that the mechanism declares." in table.notes
    said = [note for note in _table(swept("a", 2.0)).notes if note.startswith("n/a")]
    assert said == []


def test_what_is_declared_in_other_words_is_shown_and_not_compared() -> None:
    table = _table(swept("a", 2.0, declared=("linear", "O(n)")))
    assert _cell(table, "a", "declared") == Cell("linear, memory n^1", "O(n)")
    assert _cell(table, "a", "against the claim") == Cell(
        "no faster growth shown", "compared: memory, train"
    )


def test_of_a_peer_nothing_is_declared() -> None:
    for declared, told in (
        (("nothing", "nothing"), Cell("not declared")),
        (("nothing", "O(n)"), Cell("not declared, memory n^1", "O(n)")),
    ):
        assert _cell(_table(swept("a", 2.0, declared=declared)), "a", "declared") == told


def test_records_that_declare_different_things_are_not_compared() -> None:
    old = swept("a", 2.0, lengths=LENGTHS[:2], declared=("O(n d)", "O(n)"))
    table = _table([*old, *swept("a", 2.0, lengths=LENGTHS[2:], declared=("O(n m d)", "O(n)"))])
    assert _cell(table, "a", "declared").text == "O(n d) and O(n m d), memory n^1"
    assert _cell(table, "a", "against the claim").note == "compared: memory, train"


def test_on_a_gpu_its_own_formula_counts() -> None:
    declared = ("O(n d)", "O(n d); O(n m) on a GPU")
    table = _table(swept("a", 1.0, machine=GPU, declared=declared))
    assert _cell(table, "a", "declared") == Cell("n^1, memory n^2", "O(n d); O(n m)")


def test_busy_timings_are_marked_and_flag_nothing_and_memory_stays() -> None:
    records = swept("a", 2.0, room=2.0)
    selection = join(records, [])
    busy = Selection(
        **{
            **{name: getattr(selection, name) for name in Selection.__struct_fields__},
            "busy": frozenset({("run", records[0].id)}),
        }
    )
    table = _table(records, busy)
    assert _cell(table, "a", "time, train").marked == "!2.00"
    assert _cell(table, "a", "memory, train").text == "2.00"
    assert _cell(table, "a", "against the claim").note == "memory, train"
    assert any(note.startswith("!:") for note in table.notes)


def test_failures_and_too_few_lengths_are_words() -> None:
    records = [
        *swept("whole", 1.0),
        *(efficiency("none", n, "train", status="unsupported") for n in LENGTHS),
        *swept("short", 1.0, lengths=LENGTHS[:2]),
        *(efficiency("short", n, "train", status="oom") for n in LENGTHS[2:]),
    ]
    table = _table(records)
    assert _cell(table, "none", "time, train") == Cell("unsupported")
    assert _cell(table, "none", "declared") == Cell("n/a")
    assert _cell(table, "short", "time, train") == Cell("n/a", "2 lengths of 3")
    assert _cell(table, "short", "against the claim") == Cell("n/a")


def test_a_fit_that_lacks_lengths_says_over_which_it_is() -> None:
    records = [*swept("a", 1.0, lengths=LENGTHS[:-1]), efficiency("a", 4096, "train", status="oom")]
    assert (
        "Of 256, 512, 1024 and 2048 alone: a (time, train; memory, train)." in _table(records).notes
    )
    assert not any(note.startswith("Of ") for note in _table(swept("a", 1.0)).notes)


def test_notes_say_whether_intervals_are_of_replicates_or_of_one_slope() -> None:
    one, three = swept("one", 1.0), swept("three", 1.0, replicates=3, noise=0.01)
    assert [n.split(":")[0] for n in _table(one).notes if n.startswith("Int")] == [
        "Intervals of one replicate"
    ]
    assert [n.split(":")[0] for n in _table([*one, *three]).notes if n.startswith("Int")] == [
        "Intervals of 3 replicates",
        "Intervals of one replicate",
    ]


def test_two_lengths_have_no_section_and_another_machine_has_its_own() -> None:
    (tables,) = efficiency_tables(join(swept("a", 1.0, lengths=LENGTHS[:2]), []))
    assert (tables.growth, tables.crossover) == (None, None)
    report, _ = assemble(join([*swept("a", 1.0), *swept("a", 2.0, machine=THERE)], []), "two")
    titles = [section.title for section in report.sections]
    assert [title for title in titles if title.startswith("Growth")] == [
        "Growth: Example CPU 9000, 2 cores",
        "Growth: Other CPU 1, 8 cores",
    ]
    assert [title for title in titles if title.startswith("Cross")] == [
        "Crossover: Example CPU 9000, 2 cores",
        "Crossover: Other CPU 1, 8 cores",
    ]


def test_a_bend_that_repeats_flags_nothing_and_the_notes_say_why() -> None:
    def affine(n: int) -> float:
        return 2734.0 * n - 0.4e6

    records = [
        efficiency("a", n, "train", 1e-6 * n, affine(n), replicate=r, declared=LINEAR)
        for n in (256, 512, 1024, 2048)
        for r in range(2)
    ]
    table = _table(records)
    assert _cell(table, "a", "memory, train").note.startswith("1.36 to 1.36")
    assert _cell(table, "a", "against the claim") == Cell("no faster growth shown")
    said = "With several replicates the interval of the slope through their means must lie above it"
    assert any(said in note for note in table.notes)
    assert not any(said in note for note in _table(swept("a", 1.0)).notes)


def test_lengths_that_no_replicate_shares_are_not_counted() -> None:
    records = [
        *swept("whole", 1.0, replicates=2),
        *swept("apart", 1.0, lengths=LENGTHS[:3]),
        *(efficiency("apart", n, "train", 1e-6 * n, replicate=1) for n in (2048, 4096, 8192)),
        *swept("partly", 1.0, lengths=LENGTHS[:3]),
        *(efficiency("partly", n, "train", 1e-6 * n, replicate=1) for n in LENGTHS[2:]),
    ]
    table = _table(records)
    said = "0 lengths of 3 in every replicate"
    assert _cell(table, "apart", "time, train") == Cell("n/a", said)
    assert _cell(table, "partly", "time, train").note == said.replace("0 lengths", "1 length")


def test_a_few_lengths_that_were_repeated_more_often_are_no_fit_of_their_own() -> None:
    whole = swept("sdpa", 2.0, replicates=3)
    more = [
        efficiency("sdpa", n, "train", 1e-6 * n, 1e3 * n, replicate=r, declared=LINEAR)
        for r in (3, 4, 5, 6)
        for n in (2048, 4096)
    ]
    assert _cell(_table(whole + more), "sdpa", "time, train").text == "2.00"
    assert not any("alone" in note for note in _table(whole + more).notes)


def test_with_dropout_on_a_cpu_the_formula_that_a_card_has_for_it_is_what_is_claimed() -> None:
    said = ("O(n m d)", "O(n); O(n m) with a bias, with dropout on a CPU")

    def told(dropout: float) -> Table:
        model = msgspec.structs.replace(MODEL, attention_dropout=dropout)
        whole = {"level": "model", "task": "text", "scale": "mine", "model": model}
        return _table(swept("sdpa", 2.0, declared=said, room=2.0, **whole))

    dropped, plain = told(0.1), told(0.0)
    assert _cell(dropped, "sdpa", "declared") == Cell("n^2, memory n^2", "O(n m d); O(n m)")
    assert _cell(dropped, "sdpa", "against the claim") == Cell("no faster growth shown")
    assert _cell(plain, "sdpa", "declared") == Cell("n^2, memory n^1", "O(n m d); O(n)")
    assert _cell(plain, "sdpa", "against the claim").note == "memory, train"
