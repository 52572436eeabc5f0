"""The sentences to read first, on accuracy and on what is missing; the small table."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from lra.report.answer.seeds import seeds_of
from lra.report.answer.sentences import answer, summary
from lra.report.costs.tables import efficiency_tables
from lra.report.error.tables import error_tables
from lra.report.quality.standing import standing
from lra.report.quality.tables import quality_tables
from lra.report.select import join

from lra.core.records import Record
from lra.report.words import TIMES
from report.answer.said import answered, timed
from report.mechanisms.checks import softmax
from report.sample import TRAINING, baseline, data, efficiency, error, quality


def test_one_mechanism_is_told_task_by_task_beside_exact_and_no_mixing() -> None:
    records = [quality("performer", "text", 0.783)]
    reference = [quality("sdpa", "text", 0.999), quality("identity", "text", 0.501)]
    assert answered(records, reference) == (
        "performer: 78.3 % on text (sdpa 99.9 %, no mixing 50.1 %).",
    )


def test_several_mechanisms_on_one_task_are_one_list_the_best_first() -> None:
    names = {"linear": 0.603, "performer": 0.783, "sdpa": 0.999, "identity": 0.501}
    run = [quality(name, "text", share) for name, share in names.items()]
    run += [quality("lstm", "text", None, status="oom")]
    told = "text: performer 78.3 %, linear 60.3 % and lstm OOM (sdpa 99.9 %, no mixing 50.1 %)."
    assert answered(run)[0] == told
    # Of several seeds each has its own words, and two pairs of brackets would stand side by side.
    again = [quality(name, "text", share, seed=1) for name, share in names.items()]
    (first, *_) = answered([*run[:4], *again])
    assert first.startswith("text: performer 78.3 % (77.9 to 78.7, 2 seeds) and linear 60.3 % (")
    assert first.endswith(", 2 seeds); sdpa 99.9 %, no mixing 50.1 %.")


def test_tasks_on_which_nothing_is_above_guessing_are_named() -> None:
    # Of 2000 rows; guessing at one half reaches 52.6 % by luck.
    records = [baseline(task) for task in ("text", "retrieval", "pathfinder")]
    run = [quality("performer", task, 0.52) for task in ("text", "retrieval", "pathfinder")]
    reference = [quality("sdpa", "text", 0.53)]
    assert answered([*records, *run], reference)[-1] == (
        "On retrieval and pathfinder no mechanism beats lucky guessing."
    )
    assert len(answered(run, reference)) == 1
    failed = [quality("performer", "text", status="oom"), quality("performer", "pathfinder", 0.6)]
    assert "luck" not in " ".join(answered([*records, *failed]))


def test_the_bag_of_tokens_stands_beside_what_it_is_as_good_as() -> None:
    run = [quality("performer", "text", 0.60), quality("identity", "text", 0.55)]
    told, *rest = answered([*run, baseline("text", bag=0.64)])
    assert told == "performer: 60.0 % on text (no mixing 55.0 %, bag of tokens 64.0 %)."
    assert rest == [
        "On text no mechanism beats the bag of tokens: none shows that it reads more than how "
        "often each token occurs."
    ]
    # Not where no mixing, or a rule that says less, is better.
    for simple in (baseline("text", bag=0.54), baseline("text", bag=0.64, area=0.65)):
        assert answered([*run, simple])[0] == "performer: 60.0 % on text (no mixing 55.0 %)."
    # Nor where both print the same.
    simple = baseline("text", bag=0.5502)
    assert answered([*run, simple])[0] == "performer: 60.0 % on text (no mixing 55.0 %)."
    assert answered([run[0], baseline("text", bag=0.64)])[0] == "performer: 60.0 % on text."


def test_one_mechanism_above_the_bag_of_tokens_is_enough_and_luck_is_not() -> None:
    needle = "beats the bag of tokens"

    def below(bag: float, *accuracies: float) -> bool:
        run = [quality(f"m{n}", "text", accuracy) for n, accuracy in enumerate(accuracies)]
        return needle in " ".join(answered([*run, baseline("text", bag=bag)]))

    assert below(0.64, 0.60, 0.64)
    assert not below(0.64, 0.60, 0.65)
    # Of 2000 rows; guessing at one half reaches 52.6 % by luck.
    assert not below(0.52, 0.51)
    assert needle not in " ".join(answered([quality("m", "text", 0.5)]))
    failed = [quality("m", "text", None, status="oom"), baseline("text", bag=1.0)]
    assert needle not in " ".join(answered(failed))


def test_many_mechanisms_are_told_by_the_best() -> None:
    shares = {"a": 0.5, "b": 0.8, "c": 0.7, "d": 0.6, "sdpa": 0.9}
    tasks = ("text", "image", "listops")
    records = [quality(name, task, share) for name, share in shares.items() for task in tasks]
    records += [timed(n, s, 50e6) for n, s in zip("abcd", (4.0, 3.0, 2.0, 1.0), strict=True)]
    records.append(timed("sdpa", 5.0, 100e6))
    assert answered(records) == (
        "4 mechanisms beside sdpa on 3 tasks. Highest mean accuracy over listops, text and image "
        "(one seed each): b 80.0 %, c 70.0 % and d 60.0 % (sdpa 90.0 %).",
        "Trained on generated data, 32 to 160 tokens.",
        "For a training step of the layer at length 2048 (one process each), fastest: d, 0.200 "
        f"{TIMES} sdpa; least memory, not told apart: a, b and c, 0.500, 0.500 and 0.500 {TIMES} "
        "sdpa, and 1 more.",
    )


def test_accuracies_name_their_length_where_times_of_another_stand_beside_them() -> None:
    files = data("text", source="file", length=1000)
    run = [quality("a", "text", 0.6, data_spec=files), timed("a", 1.0, 1e6)]
    assert answered(run)[1] == "Trained on data from files, 1,000 tokens."
    assert len(answered(run[:1])) == 1
    # With several tables it stands in their headings.
    both = answered([*run, quality("a", "text", scale="small"), quality("a", "image")])
    assert [told for told in both if told.endswith(":")] == [
        "Test accuracy at scale mini, data from files (1,000 tokens):",
        "Test accuracy at scale mini (generated data, 144 tokens):",
        "Test accuracy at scale small (generated data, 160 tokens):",
        "Speed and memory:",
    ]
    assert not any(told.startswith("Trained on") for told in both)


def _ranked(shares: dict[str, float]) -> list[Record]:
    tasks = ("text", "image", "listops")
    return [quality(name, task, share) for name, share in shares.items() for task in tasks]


def test_exact_attention_in_another_guise_is_told_apart_from_the_others() -> None:
    shares = {"full": 0.91, "chunked": 0.92, "a": 0.5, "b": 0.8, "sdpa": 0.9, "identity": 0.3}
    checks = [softmax("full"), softmax("chunked")]
    start = "4 mechanisms beside sdpa and no mixing on 3 tasks. Highest mean accuracy over "
    (told,) = answered([*_ranked(shares), *checks])
    assert told == (
        f"{start}listops, text and image of those that are not exact attention (one seed each): "
        "b 80.0 % and a 50.0 % (sdpa 90.0 %, no mixing 30.0 %). Exact attention too: chunked "
        "92.0 % and full 91.0 %."
    )
    # What no check tells of stays among the others.
    (told,) = answered(_ranked(shares))
    assert f"{start}listops, text and image (one seed each): chunked 92.0 %, full 91.0 %" in told
    exact = {f"exact_{n}": 0.9 + n / 100 for n in range(7)}
    records = [*_ranked({**exact, "a": 0.5}), *map(softmax, exact)]
    assert answered(records)[0].endswith(", exact_3 93.0 % and exact_2 92.0 %, and 2 more.")
    (told,) = answered([*_ranked(exact), *map(softmax, exact)])
    assert "not exact" not in told and "exact_6 96.0 %, exact_5 95.0 % and exact_4 94.0 %." in told


def test_those_that_print_the_last_figure_told_are_counted() -> None:
    (told,) = answered(_ranked({"a": 0.9, "b": 0.8, "c": 0.7, "d": 0.7, "e": 0.6, "sdpa": 0.95}))
    assert told.endswith(": a 90.0 %, b 80.0 % and c 70.0 %, and 1 more with 70.0 %; sdpa 95.0 %.")
    (told,) = answered(_ranked({"a": 0.9, "b": 0.9, "c": 0.7, "d": 0.6}))
    assert "more" not in told


def test_only_mechanisms_with_all_tasks_are_compared_and_the_others_named() -> None:
    tasks = ("text", "image", "listops")
    run = [quality(n, t, s) for n, s in {"a": 0.5, "b": 0.8, "c": 0.7}.items() for t in tasks]
    run += [quality("d", "text", 0.99), quality("d", "image", status="oom")]
    run += [quality("identity", "text", 0.1)]
    earlier = "2026-11-01T10:00:00Z"
    reference = [quality("identity", task, 0.2, started=earlier) for task in tasks]
    assert answered(run, reference)[0] == (
        "4 mechanisms beside no mixing on 3 tasks. Highest mean accuracy over listops, text and "
        "image (one seed each): b 80.0 %, c 70.0 % and a 50.0 % (no mixing 20.0 %). Not compared: "
        "d (no figure on listops and image)."
    )
    many = [quality(f"x{n}", "text", 0.9) for n in range(4)]
    assert answered([*run, *many], reference)[0].endswith(
        "(no mixing 20.0 %). 5 of them lack some of these and are not compared."
    )


def _trained(name: str, shares: Sequence[float], *tasks: str, measure: int = 1) -> list[Record]:
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
    run += _trained("e", seeds, *tasks, measure=9)
    selection = join(run, [])
    (table,) = quality_tables(selection)
    first, second = answer(selection, [table], [], [], [standing(table, selection)])
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
    assert " x1 50.0 % (one seed), and 8 more with 50.0 %; sdpa 90.0 %." in answered(run)[0]


def test_of_few_mechanisms_seeds_and_those_that_failed_are_told() -> None:
    failed = quality("linear", "text", seed=1, status="oom")
    told = answered([*_trained("linear", (0.6,), "text"), failed])
    assert told[0] == "linear: 60.0 % (one seed, 1 OOM) on text."
    several = [*_trained("linear", (0.60, 0.62), "text"), *_trained("linear", (0.7,), "image")]
    assert answered(several)[0] == (
        "linear: 61.0 % (48 to 74, 2 seeds) on text; 70.0 % (one seed) on image."
    )


def test_of_a_task_only_the_column_in_the_mean_is_lacking() -> None:
    fewer = msgspec.structs.replace(TRAINING, steps=200)
    run = [quality(n, t, 0.5) for n in ("a", "b", "c") for t in ("listops", "text")]
    run += [quality("d", "text", 0.9), quality("e", "listops", training=fewer)]
    run += [quality(n, "pathx", 0.5) for n in ("a", "b")]
    (told, *_) = answered(run)
    assert told.endswith(
        " Not compared: d (no figure on listops (steps=300)) and e (no figure on listops "
        "(steps=300) and text)."
    )


def test_of_one_column_all_without_a_figure_are_not_compared() -> None:
    run = [quality(f"x{n}", "text", 0.5) for n in range(10)]
    told = answered([*run, quality("y", "text", status="oom")])[0]
    assert told.endswith(" Not compared: y (no figure on text).")


def test_an_anchor_without_a_figure_gives_way_to_the_reference_task_by_task() -> None:
    run = [quality("a", task, 0.7) for task in ("text", "image")] + [
        quality("identity", "text", 0.1)
    ]
    reference = [quality("identity", task, 0.2) for task in ("text", "image")]
    assert answered(run, reference)[0] == (
        "a: 70.0 % on text (no mixing 10.0 %); 70.0 % on image (no mixing 20.0 %)."
    )


def test_reference_rows_of_other_settings_are_missed_in_a_sentence() -> None:
    fewer = msgspec.structs.replace(TRAINING, steps=200)
    run = [quality("a", task, 0.7, training=fewer) for task in ("text", "image")]
    reference = [quality(name, "text", 0.9) for name in ("sdpa", "identity")]
    reference.append(quality("sdpa", "image", 0.9))
    why = (
        "Reference rows are not shown on text and image: they were trained with other settings "
        "(training.steps)"
    )
    assert answered(run, reference)[1:] == (
        f"{why}; add --baselines to train exact attention and no mixing with this run's settings.",
    )
    own = [quality(n, t, training=fewer) for n in ("sdpa", "identity") for t in ("text", "image")]
    assert answered([*run, *own], reference)[1:] == (f"{why}.",)
    assert len(answered([quality("a", "text", 0.7)], reference)) == 1
    assert len(answered(run, [quality("sdpa", "text", scale="small")])) == 1


def test_reference_rows_are_missed_in_the_columns_and_at_the_scale_that_lack_them() -> None:
    fewer = msgspec.structs.replace(TRAINING, steps=200)
    run = [quality("a", "text", 0.6, training=fewer), quality("a", "text", 0.7)]
    reference = [quality("sdpa", "text", 0.9)]
    why = (
        "Reference rows are not shown on text (steps=200): they were trained with other settings "
        "(training.steps); add --baselines to train exact attention and no mixing with this run's "
        "settings."
    )
    own, told = answered(run, reference)
    assert "70.0 % on text (steps=300) (sdpa 90.0 %)" in own and told == why
    run = [quality("a", "text"), quality("a", "text", scale="small", training=fewer)]
    run.append(quality("a", "image", scale="tiny"))
    told = answered(run, [*reference, quality("sdpa", "text", scale="small")])
    assert [t.partition(" on text: ")[0] for t in told] == [
        "Test accuracy at scale mini (generated data, 160 tokens):",
        "a: 50.0 % on text (sdpa 90.0 %).",
        "Test accuracy at scale small (generated data, 160 tokens):",
        "a: 50.0 % on text.",
        "Reference rows are not shown",
        "Test accuracy at scale tiny (generated data, 144 tokens):",
        "a: 50.0 % on image.",
    ]


def test_of_several_reference_protocols_the_closest_is_told() -> None:
    here = msgspec.structs.replace(TRAINING, steps=200)
    far = msgspec.structs.replace(TRAINING, batch=64, warmup=50)
    for reference in ([TRAINING, far], [far, TRAINING]):
        other = [quality("sdpa", "text", training=training) for training in reference]
        (told,) = answered([quality("a", "text", training=here)], other)[1:]
        assert "(training.steps);" in told


def test_the_hash_of_data_is_told_only_where_nothing_else_differs() -> None:
    fewer = msgspec.structs.replace(TRAINING, steps=200)
    other = quality("sdpa", "text", data_spec=data("text", hash="0" * 20))
    versions = {**other.cell.versions, "data/text": 2}
    bumped = msgspec.structs.replace(quality("sdpa", "text").cell, versions=versions)
    later = msgspec.structs.replace(other, cell=bumped)
    for training, reference, named in (
        (fewer, other, "(training.steps);"),
        (fewer, later, "(training.steps);"),
        (TRAINING, other, "(data.hash);"),
        (TRAINING, later, "(data.version);"),
    ):
        (told,) = answered([quality("a", "text", training=training)], [reference])[1:]
        assert named in told


def test_two_tables_are_told_apart_by_their_titles() -> None:
    told = answered([quality("a", "text", 0.5), quality("a", "text", 0.6, scale="small")])
    assert told == (
        "Test accuracy at scale mini (generated data, 160 tokens):",
        "a: 50.0 % on text.",
        "Test accuracy at scale small (generated data, 160 tokens):",
        "a: 60.0 % on text.",
    )


def test_a_run_of_baselines_alone_says_so() -> None:
    assert answered([baseline("text")]) == ("The run has no accuracy or time yet.",)


def test_a_run_of_errors_against_keys_of_its_own_alone_points_to_the_tables() -> None:
    selection = join([error("reformer", 256, own_keys=True)], [])
    assert answer(selection, [], [], error_tables(selection), []) == ("Errors are in tables.",)
    failed = join([error("reformer", 256, status="oom")], [])
    assert "Errors are in tables." not in answer(failed, [], [], error_tables(failed), [])


def test_the_small_table_has_the_run_the_anchors_and_the_baselines() -> None:
    records = [quality("performer", "text")]
    reference = [quality(name, "text") for name in ("sdpa", "identity", "linear")]
    selection = join(records, reference)
    table = summary(quality_tables(selection), [], [])
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
    table = summary([], efficiency_tables(selection), [])
    assert table is not None
    assert table.title.startswith("Time of a training step")


def test_a_run_of_no_mixing_alone_says_what_it_found() -> None:
    assert answered([quality("identity", "text", 0.501)]) == (
        "no mixing (identity): 50.1 % on text.",
    )


def test_the_table_of_errors_is_of_the_inputs_that_the_sentence_is_of() -> None:
    selection = join([error("performer", 256, input_scale=scale) for scale in (0.25, 1.0)], [])
    table = summary([], [], error_tables(selection))
    assert table is not None and table.title.endswith(f"inputs {TIMES} 1")
    (told,) = answer(selection, [], [], error_tables(selection), [])
    assert f"inputs {TIMES} 1:" in told
