"""The sentences to read first."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from lra.core.records import Metric, Record
from lra.report.answer.seeds import seeds_of
from lra.report.answer.sentences import answer, caveats, summary
from lra.report.costs.place import Cost
from lra.report.costs.tables import efficiency_tables
from lra.report.error.tables import error_tables
from lra.report.quality.standing import standing
from lra.report.quality.tables import quality_tables
from lra.report.select import join
from lra.report.words import TIMES
from report.sample import THERE, TRAINING, baseline, data, efficiency, error, mechanism, quality


def _answer(records: list[Record], reference: list[Record] | None = None) -> tuple[str, ...]:
    selection = join(records, reference or [])
    tables = quality_tables(selection)
    told = answer(selection, tables, efficiency_tables(selection))
    return (*told, *caveats(selection, tables))


def _timed(name: str, seconds: float, memory: float, length: int = 2048) -> Record:
    return efficiency(name, length, "train", seconds, memory)


def test_one_mechanism_is_told_task_by_task_beside_exact_and_no_mixing() -> None:
    records = [quality("performer", "text", 0.783)]
    reference = [quality("sdpa", "text", 0.999), quality("identity", "text", 0.501)]
    assert _answer(records, reference) == (
        "performer: 78.3 % on text (sdpa 99.9 %, no mixing 50.1 %).",
    )


def test_cost_is_told_at_the_longest_length_as_ratios() -> None:
    records = [
        _timed("performer", 0.041, 50e6),
        _timed("sdpa", 0.1, 100e6),
        _timed("performer", 0.5, 50e6, length=512),
    ]
    assert _answer(records) == (
        f"At length 2048 a training step of the performer layer takes 0.41 {TIMES} the time of "
        f"sdpa and 0.500 {TIMES} its memory.",
    )


def test_without_a_time_of_exact_attention_the_cost_is_absolute() -> None:
    records = [
        _timed("performer", 0.041, 50e6),
        efficiency("sdpa", 2048, "train", status="oom"),
    ]
    assert _answer(records) == (
        "At length 2048 a training step of the performer layer takes 41.0 ms and 50.0 MB; "
        "sdpa has no time there.",
        "1 of 2 cells is not ok: 1 OOM.",
    )


def test_an_ending_is_told_in_words() -> None:
    told = _answer([quality("performer", "text", status="diverged")])
    assert told == ("performer: diverged on text.", "1 of 1 cell is not ok: 1 diverged.")


def test_what_never_had_a_time_is_told_without_an_internal_word() -> None:
    records = [efficiency("performer", n, "train", status="skipped") for n in (512, 1024)]
    assert _answer(records)[0] == (
        "There is no time of a training step of the performer layer "
        "(skipped: a shorter length failed)."
    )


def test_many_mechanisms_are_told_by_the_best() -> None:
    shares = {"a": 0.5, "b": 0.8, "c": 0.7, "d": 0.6, "sdpa": 0.9}
    tasks = ("text", "image", "listops")
    records = [quality(name, task, share) for name, share in shares.items() for task in tasks]
    records += [_timed(n, s, 50e6) for n, s in zip("abcd", (4.0, 3.0, 2.0, 1.0), strict=True)]
    records.append(_timed("sdpa", 5.0, 100e6))
    assert _answer(records) == (
        "4 mechanisms on 3 tasks. Highest mean accuracy over listops, text and image (one seed "
        "each): b 80.0 %, c 70.0 % and d 60.0 % (sdpa 90.0 %).",
        "For a training step of the layer at length 2048 (one process each), fastest: d, 0.200 "
        f"{TIMES} sdpa; least memory, not told apart: a, b and c, 0.500, 0.500 and 0.500 {TIMES} "
        "sdpa, and 1 more.",
    )


def test_only_mechanisms_with_all_tasks_are_compared_and_the_others_named() -> None:
    tasks = ("text", "image", "listops")
    run = [quality(n, t, s) for n, s in {"a": 0.5, "b": 0.8, "c": 0.7}.items() for t in tasks]
    run += [quality("d", "text", 0.99), quality("d", "image", status="oom")]
    run += [quality("identity", "text", 0.1)]
    earlier = "2026-11-01T10:00:00Z"
    reference = [quality("identity", task, 0.2, started=earlier) for task in tasks]
    assert _answer(run, reference)[0] == (
        "4 mechanisms on 3 tasks. Highest mean accuracy over listops, text and image (one seed "
        "each): b 80.0 %, c 70.0 % and a 50.0 % (no mixing 20.0 %). Not compared: d (no figure on "
        "listops and image)."
    )
    many = [quality(f"x{n}", "text", 0.9) for n in range(4)]
    assert _answer([*run, *many], reference)[0].endswith(
        "(no mixing 20.0 %). 5 of them lack some of these and are not compared."
    )


def _trained(name: str, shares: Sequence[float], *tasks: str, measure: str = "m1") -> list[Record]:
    return [
        quality(name, task, share, seed=n, measure=measure)
        for task in tasks
        for n, share in enumerate(shares)
    ]


def test_the_best_have_their_seeds_and_interval_and_what_was_not_tested_is_told() -> None:
    tasks, seeds = ("text", "image", "listops"), (0.80, 0.81, 0.82)
    run = [*_trained("a", seeds, *tasks), *_trained("b", (0.79,), *tasks)]
    run += [*_trained("c", (0.7, 0.71), "text", "image"), *_trained("c", (0.7,), "listops")]
    run += [quality("c", "listops", seed=1, status="oom"), *_trained("d", (0.5, 0.52), *tasks)]
    run += _trained("e", seeds, *tasks, measure="m0")
    selection = join(run, [])
    (table,) = quality_tables(selection)
    first, second = answer(selection, [table], [], standings=[standing(table, selection)])
    assert first == (
        "5 mechanisms on 3 tasks. Highest mean accuracy over listops, text and image: a 81.0 % "
        "(78.5 to 83.5, 3 seeds), e 81.0 % (78.5 to 83.5, 3 seeds) and b 79.0 % (one seed)."
    )
    assert second.endswith(
        " 3 rows could not be tested: one seed or another version of the measuring code."
    )
    row = table.table.row("c", "run")
    assert row is not None
    assert seeds_of(table, selection).told(row, table.averaged, -1) == "1 to 2 seeds, 1 OOM"


def test_beside_intervals_the_anchors_stand_in_no_second_brackets() -> None:
    run = [*_trained("sdpa", (0.9,), "text"), *(quality(f"x{n}", "text") for n in range(10))]
    run += _trained("y", (0.6, 0.7), "text")
    assert " x1 50.0 % (one seed); sdpa 90.0 %." in _answer(run)[0]


def test_of_few_mechanisms_seeds_and_those_that_failed_are_told() -> None:
    failed = quality("linear", "text", seed=1, status="oom")
    told = _answer([*_trained("linear", (0.6,), "text"), failed])
    assert told[0] == "linear: 60.0 % (one seed, 1 OOM) on text."
    several = [*_trained("linear", (0.60, 0.62), "text"), *_trained("linear", (0.7,), "image")]
    assert _answer(several)[0] == (
        "linear: 61.0 % (48 to 74, 2 seeds) on text; 70.0 % (one seed) on image."
    )


def test_of_a_task_only_the_column_in_the_mean_is_lacking() -> None:
    fewer = msgspec.structs.replace(TRAINING, steps=200)
    run = [quality(n, t, 0.5) for n in ("a", "b", "c") for t in ("listops", "text")]
    run += [quality("d", "text", 0.9), quality("e", "listops", training=fewer)]
    run += [quality(n, "pathx", 0.5) for n in ("a", "b")]
    (told, *_) = _answer(run)
    assert told.endswith(
        " Not compared: d (no figure on listops (steps=300)) and e (no figure on listops "
        "(steps=300) and text)."
    )


def test_of_one_column_all_without_a_figure_are_not_compared() -> None:
    run = [quality(f"x{n}", "text", 0.5) for n in range(10)]
    told = _answer([*run, quality("y", "text", status="oom")])[0]
    assert told.endswith(" Not compared: y (no figure on text).")


def test_an_anchor_without_a_figure_gives_way_to_the_reference_task_by_task() -> None:
    run = [quality("a", task, 0.7) for task in ("text", "image")] + [
        quality("identity", "text", 0.1)
    ]
    reference = [quality("identity", task, 0.2) for task in ("text", "image")]
    assert _answer(run, reference)[0] == (
        "a: 70.0 % on text (no mixing 10.0 %); 70.0 % on image (no mixing 20.0 %)."
    )


def test_the_fastest_is_said_to_be_so_only_of_those_that_came_so_far() -> None:
    names = ("a", "b", "c", "d", "sdpa")
    records = [_timed(name, 0.1, 50e6, length=512) for name in names]
    records += [_timed(name, 0.2, 50e6) for name in ("a", "sdpa")]
    assert _answer(records)[0].startswith(
        "For a training step of the layer at length 2048 (one process each), where 1 of 4 "
        "mechanisms have a figure, fastest: a,"
    )


def test_where_some_sizes_are_not_known_none_is_called_the_least() -> None:
    """A size that could not be measured may be smaller than can be told."""
    records = [efficiency(name, 2048, "train", 0.1, None) for name in ("a", "b", "c")]
    records += [_timed(name, 0.2, 50e6) for name in ("d", "sdpa")]
    assert _answer(records)[0] == (
        "For a training step of the layer at length 2048 (one process each), fastest, not told "
        f"apart: a, b and c, 0.50, 0.50 and 0.50 {TIMES} sdpa."
    )


def test_without_exact_attention_the_cheapest_are_absolute() -> None:
    records = [_timed(n, s, 50e6) for n, s in zip("abcd", (4.0, 3.0, 2.0, 1.0), strict=True)]
    assert _answer(records) == (
        "For a training step of the layer at length 2048 (one process each), fastest: d, 1.00 s; "
        "least memory, not told apart: a, b and c, 50.0, 50.0 and 50.0 MB, and 1 more.",
    )


def test_a_time_of_another_version_of_the_measuring_code_is_not_called_missing() -> None:
    records = [_timed("a", 0.1, 50e6), efficiency("sdpa", 2048, "train", measure="e2")]
    first, second = _answer(records)
    assert first == (
        "At length 2048 a training step of the a layer (measured by code e1) takes 100 ms and "
        "50.0 MB; sdpa's time is of another version of the measuring code."
    )
    assert "the sdpa layer (measured by code e2) takes" in second


def test_of_exact_attention_alone_its_own_time_is_told() -> None:
    records = [_timed("sdpa", 0.1, 100e6), _timed("identity", 0.01, 1e6)]
    assert _answer(records) == (
        "At length 2048 a training step of the sdpa layer takes 100 ms and 100 MB.",
    )
    assert _answer(records[1:]) == (
        "At length 2048 a training step of the identity layer takes 10.0 ms and 1.00 MB; sdpa has "
        "no time there.",
    )


def test_a_mode_without_a_time_hides_no_other() -> None:
    records = [efficiency(name, 512, "train", status="unsupported") for name in "abcd"]
    assert _answer(records)[0] == (
        "There is no time of a training step of the layer by any of 4 mechanisms."
    )
    (told, _) = _answer([*records, efficiency("a", 512, "forward", 1.0)])
    assert told.startswith("At length 512 a forward pass of the a layer takes 1.00 s")


def _replicates(name: str, *seconds: float, length: int = 2048, **fields: object) -> list[Record]:
    return [
        efficiency(name, length, "train", s, 1e6 * ord(name[0]), replicate=n, **fields)  # type: ignore[arg-type]
        for n, s in enumerate(seconds)
    ]


@pytest.mark.parametrize(
    ("second", "told"),
    [
        ((1.3, 1.4, 1.5), f"fastest: a, 0.11 {TIMES} sdpa;"),
        ((1.15, 1.4, 1.5), f"fastest, not told apart: a and b, 0.11 and 0.14 {TIMES} sdpa;"),
        # One process says nothing of the next; so near is no win.
        ((1.2,), f"fastest, not told apart: a and b, 0.11 and 0.120 {TIMES} sdpa;"),
        ((1.3,), f"fastest: a, 0.11 {TIMES} sdpa;"),
    ],
)
def test_the_fastest_stands_alone_where_processes_tell_it_apart(
    second: tuple[float, ...], told: str
) -> None:
    records = [*_replicates("a", 1.0, 1.1, 1.2), *_replicates("b", *second)]
    records += [r for name in ("c", "d") for r in _replicates(name, 4.0, 4.0, 4.0)]
    answered = _answer([*records, *_replicates("sdpa", 10.0, 10.0, 10.0)])[0]
    assert answered.startswith(f"For a training step of the layer at length 2048, {told}")


def test_one_process_within_the_range_of_several_is_not_told_apart() -> None:
    several, alone = Cost(1.1, 1.0, 1.9, processes=3), Cost(1.3, 1.2, 1.4)
    assert not several.below(alone) and not alone.below(several)
    assert several.below(Cost(2.0, 1.9, 2.1)) and Cost(0.5, 0.4, 0.6).below(several)


def test_what_some_replicates_lack_never_wins_alone_and_says_so() -> None:
    lost = efficiency("a", 2048, "train", status="timeout", replicate=2)
    records = [*_replicates("a", 1.0, 1.1), lost]
    records += [r for name in "bcd" for r in _replicates(name, 4.0, 4.0, 4.0)]
    records += _replicates("sdpa", 10.0, 10.0, 10.0)
    assert f"fastest, not told apart: a and b, 0.11 and 0.400 {TIMES} sdpa;" in _answer(records)[0]
    alone = [*records[:3], *records[-3:]]
    assert _answer(alone)[0].endswith("; 2 of 3 processes have a time (timeout).")


def _busy(record: Record) -> Record:
    slowed = {"control_before": Metric(value=13e-3, unit="s")}
    return msgspec.structs.replace(record, metrics={**record.metrics, **slowed})


def test_what_a_busy_machine_timed_is_not_named_but_counted() -> None:
    records = [_timed(n, s, 50e6) for n, s in zip("abcd", (4.0, 3.0, 2.0, 1.0), strict=True)]
    exact = _timed("sdpa", 5.0, 100e6)
    told = _answer([*records[:3], _busy(records[3]), exact])[0]
    assert f"fastest: c, 0.40 {TIMES} sdpa (1 timed on a busy machine left out);" in told
    # Every ratio is to a disturbed time.
    told = _answer([*records, _busy(exact)])[0]
    assert f"fastest: d, 0.200 {TIMES} sdpa (busy machine);" in told and "!" not in told


def test_of_few_a_busy_machine_is_told_in_words() -> None:
    records = [_timed("a", 1.0, 50e6), _timed("b", 1.0, 50e6), _timed("c", 1.0, 50e6)]
    for few, told in (
        ([*records, _busy(_timed("sdpa", 5.0, 100e6))], f"0.200 {TIMES} the time of sdpa"),
        ([_busy(records[0]), *records[1:]], "1.00 s"),
    ):
        first = _answer(few)[0]
        assert f"a layer takes {told} (busy machine) and " in first and "!" not in first


def test_reference_rows_of_other_settings_are_missed_in_a_sentence() -> None:
    fewer = msgspec.structs.replace(TRAINING, steps=200)
    run = [quality("a", task, 0.7, training=fewer) for task in ("text", "image")]
    reference = [quality(name, "text", 0.9) for name in ("sdpa", "identity")]
    reference.append(quality("sdpa", "image", 0.9))
    why = (
        "Reference rows are not shown on text and image: they were trained with other settings "
        "(training.steps)"
    )
    assert _answer(run, reference)[1:] == (
        f"{why}; add --baselines to train exact attention and no mixing with these.",
    )
    own = [quality(n, t, training=fewer) for n in ("sdpa", "identity") for t in ("text", "image")]
    assert _answer([*run, *own], reference)[1:] == (f"{why}.",)
    assert len(_answer([quality("a", "text", 0.7)], reference)) == 1
    assert len(_answer(run, [quality("sdpa", "text", scale="small")])) == 1


def test_reference_rows_are_missed_in_the_columns_and_at_the_scale_that_lack_them() -> None:
    fewer = msgspec.structs.replace(TRAINING, steps=200)
    run = [quality("a", "text", 0.6, training=fewer), quality("a", "text", 0.7)]
    reference = [quality("sdpa", "text", 0.9)]
    why = (
        "Reference rows are not shown on text (steps=200): they were trained with other settings "
        "(training.steps); add --baselines to train exact attention and no mixing with these."
    )
    own, told = _answer(run, reference)
    assert "70.0 % on text (steps=300) (sdpa 90.0 %)" in own and told == why
    run = [quality("a", "text"), quality("a", "text", scale="small", training=fewer)]
    run.append(quality("a", "image", scale="tiny"))
    told = _answer(run, [*reference, quality("sdpa", "text", scale="small")])
    assert [t.partition(" on text: ")[0] for t in told] == [
        "Test accuracy at scale mini:",
        "a: 50.0 % on text (sdpa 90.0 %).",
        "Test accuracy at scale small:",
        "a: 50.0 % on text.",
        "Reference rows are not shown",
        "Test accuracy at scale tiny:",
        "a: 50.0 % on image.",
    ]


def test_of_several_reference_protocols_the_closest_is_told() -> None:
    here = msgspec.structs.replace(TRAINING, steps=200)
    far = msgspec.structs.replace(TRAINING, batch=64, warmup=50)
    for reference in ([TRAINING, far], [far, TRAINING]):
        other = [quality("sdpa", "text", training=training) for training in reference]
        (told,) = _answer([quality("a", "text", training=here)], other)[1:]
        assert "(training.steps);" in told


def test_the_hash_of_data_is_told_only_where_nothing_else_differs() -> None:
    fewer = msgspec.structs.replace(TRAINING, steps=200)
    reference = [quality("sdpa", "text", data_spec=data("text", hash="0" * 20))]
    for training, named in ((fewer, "(training.steps);"), (TRAINING, "(data.hash);")):
        (told,) = _answer([quality("a", "text", training=training)], reference)[1:]
        assert named in told


def test_the_cheapest_of_many_are_at_the_longest_length_that_has_a_ratio() -> None:
    records = [
        efficiency(name, length, "train", seconds, 50e6)
        for name, seconds in zip("abcd", (4.0, 3.0, 2.0, 1.0), strict=True)
        for length in (512, 1024)
    ]
    records.append(_timed("sdpa", 5.0, 100e6, length=512))
    records.append(efficiency("sdpa", 1024, "train", status="oom"))
    assert _answer(records)[0].startswith(
        "For a training step of the layer at length 512 (one process each), fastest: d, 0.200"
    )


def test_two_tables_are_told_apart_by_their_titles() -> None:
    told = _answer([quality("a", "text", 0.5), quality("a", "text", 0.6, scale="small")])
    assert told == (
        "Test accuracy at scale mini:",
        "a: 50.0 % on text.",
        "Test accuracy at scale small:",
        "a: 60.0 % on text.",
    )


def test_costs_of_another_machine_are_not_told() -> None:
    records = [quality("performer", "text", 0.8), efficiency("performer", 512, "train")]
    reference = [efficiency("sdpa", 512, "train", 0.001, machine=THERE)]
    (_, cost) = _answer(records, reference)
    assert cost.endswith("takes 10.0 ms and 50.0 MB; sdpa has no time there.")


def test_a_run_of_baselines_alone_says_so() -> None:
    assert _answer([baseline("text")]) == ("The run has neither an accuracy nor a time yet.",)


def test_a_run_of_errors_against_keys_of_its_own_alone_points_to_the_tables() -> None:
    selection = join([error("reformer", 256, own_keys=True)], [])
    assert answer(selection, [], [], error_tables(selection)) == ("Errors are in tables.",)
    failed = join([error("reformer", 256, status="oom")], [])
    assert "Errors are in tables." not in answer(failed, [], [], error_tables(failed))


def test_the_small_table_has_the_run_the_anchors_and_the_baselines() -> None:
    records = [quality("performer", "text")]
    reference = [quality(name, "text") for name in ("sdpa", "identity", "linear")]
    selection = join(records, reference)
    table = summary(quality_tables(selection), [])
    assert table is not None
    assert [row.label for row in table.rows] == [
        "performer",
        "sdpa",
        "no mixing (identity)",
        "bag of tokens",
        "majority",
    ]


def test_the_small_table_of_a_sweep_is_the_time_of_a_training_step() -> None:
    selection = join([efficiency("a", 512), efficiency("a", 512, "train")], [])
    table = summary([], efficiency_tables(selection))
    assert table is not None
    assert table.title.startswith("Time of a training step")


def test_a_run_of_no_mixing_alone_says_what_it_found() -> None:
    assert _answer([quality("identity", "text", 0.501)]) == (
        "no mixing (identity): 50.1 % on text.",
    )


def test_costs_of_several_settings_are_told_apart_and_eager_ones_come_first() -> None:
    records = [
        efficiency(name, 512, "train", seconds, execution=execution)
        for execution, own in (("compiled", 0.02), ("eager", 0.03))
        for name, seconds in (("performer", own), ("sdpa", 0.1))
    ]
    eager, compiled = _answer(records)
    assert "of the performer layer takes 0.30" in eager
    assert "the performer layer (by torch.compile) takes 0.20" in compiled


def test_the_table_of_errors_is_of_the_inputs_that_the_sentence_is_of() -> None:
    selection = join([error("performer", 256, input_scale=scale) for scale in (0.25, 1.0)], [])
    table = summary([], [], error_tables(selection))
    assert table is not None and table.title.endswith(f"inputs {TIMES} 1")
    (told,) = answer(selection, [], [], error_tables(selection))
    assert f"inputs {TIMES} 1:" in told


def test_an_edit_between_training_and_timing_is_told() -> None:
    def told(trained: str, timed: str) -> bool:
        records = [
            quality(mechanism("performer", trained, features=32), "text"),
            efficiency(mechanism("performer", timed, features=256), 512),
        ]
        sentence = "Accuracy and speed of performer are of different versions of the source"
        return any(one.startswith(sentence) for one in _answer(records))

    assert told("as it was", "edited")
    assert not told("edited", "edited")


def test_of_many_settings_the_largest_and_one_that_decodes_are_told() -> None:
    """A run at three batches, most of it at the second, and a decoding step at the first."""
    run = [
        efficiency(name, length, "train", batch=batch)
        for batch, lengths in ((1, [512]), (2, [512, 1024]), (4, [512]))
        for length in lengths
        for name in ("a", "sdpa")
    ]
    run += [efficiency(n, 512, "decode", batch=1, direction="causal") for n in ("a", "sdpa")]
    costs = [one for one in _answer(run) if "length" in one or "tables below" in one]
    assert [one.partition(" takes ")[0] for one in costs[:2]] == [
        "At length 1024 a training step of the a layer (bidirectional, batch 2)",
        "At length 512 a decoding step of the a layer (causal, batch 1)",
    ]
    assert costs[2:] == ["And 2 other settings of sizes in the tables below."]
