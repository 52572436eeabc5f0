"""Attention of trained models: distances by mechanism and task, rollouts, and learning curves."""

import msgspec
import numpy as np
import pytest

from lra.core.trained_attention import TrainedAttention, pack_cross, pack_rollout
from lra.report.sections import learning
from lra.report.sections.trained_attention import sections
from report import sample
from report.across import across
from report.analysed import analysed, lines, recast, told

SIDE = 6


def looked(name, distances, task="text", *, rollouts=(), seed=0, examples=64, **changes):
    """A training whose attention was looked at."""
    scale, track = changes.pop("scale", "mini"), changes.pop("track", "matched")
    spec = sample.data(task, **{"length": 100, **changes})
    record = sample.quality(name, task, 0.8, data_spec=spec, seed=seed, scale=scale)
    seen = TrainedAttention(examples=examples, distances=distances, rollouts=rollouts)
    return msgspec.structs.replace(recast(record, track=track), attended=seen)


def failed(name, seed=0):
    one = looked(name, ((9.0,),), seed=seed)
    return msgspec.structs.replace(one, attended=None, method={"look_failed": "MemoryError"})


def rollout(answer):
    draws = np.random.default_rng(answer)
    pixels = draws.integers(0, 256, (SIDE, SIDE))
    return pack_rollout(pixels, draws.random((SIDE, SIDE)), label=1, answer=answer)


def table(records, reference=()):
    (section,) = sections(analysed(records, reference))
    return section.tables[0]


def test_a_distance_is_the_mean_over_layers_heads_and_seeds():
    found = table(
        [
            looked("sdpa", ((10.0, 20.0), (30.0, 40.0)), examples=16),
            looked("sdpa", ((15.0, 15.0), (15.0, 15.0)), seed=1),
            looked("linear", ((8.0,),), "listops"),
        ]
    )
    assert found.columns == ("listops (100)", "text (100)")
    assert lines(found) == [["linear", "8.0", "n/a"], ["sdpa", "n/a", "20"]]
    assert "16 to 64 validation sequences" in found.caption


def test_a_look_that_failed_is_told_from_a_mechanism_that_has_no_weights():
    partly = [looked("sdpa", ((9.0,),)), failed("sdpa", seed=1)]
    found = table([*partly, failed("linear"), sample.quality("lstm", "text")])
    assert lines(found) == [["linear", "failed"], ["sdpa", "9.0 (1 failed)"]]
    assert lines(table([failed("sdpa")])) == [["sdpa", "failed"]]


def test_scales_sources_rules_and_tracks_have_a_section_each():
    kinds = [{}, {"scale": "small"}, {"source": "file"}, {"rules": "lra2021"}, {"track": "tuned"}]
    records = [looked("sdpa", ((9.0 + n,),), **kind) for n, kind in enumerate(kinds)]
    found = sections(analysed(records))
    assert {one.setting: one.tables[0].rows[0].values[0].text for one in found} == {
        "mini": "9.0",
        "small": "10",
        "mini, data from files": "11",
        "mini, lra2021 rules": "12",
        "mini, tuned track": "13",
    }
    assert len({one.tables[0].id for one in found}) == 5


def test_a_reference_is_marked_and_no_mean_is_over_both():
    others = [looked("sdpa", ((30.0,),), seed=seed) for seed in (1, 2)]
    assert [line[:2] for line in lines(table([looked("sdpa", ((10.0,),))], others))] == [
        ["sdpa", "10"],
        ["sdpa (reference)", "30"],
    ]


@pytest.mark.parametrize(
    ("length", "there"), [(999, "n/a"), (1000, "about 750"), (4000, "about 750"), (4001, "n/a")]
)
def test_published_distances_stand_below_lengths_like_theirs_alone(length, there):
    records = [looked("sdpa", ((9.0,),), "listops", length=length)]
    # Pathfinder's, which is always shown.
    records.append(looked("sdpa", ((9.0,),), "pathfinder", length=1024))
    *_, row = table(records).rows
    assert row.label == "LRA: Transformer"
    assert [value.text for value in row.values] == [there, "about 550"]
    assert row.values[1].note == "of 1,024"
    only = table([looked("sdpa", ((9.0,),), "listops", length=24)])
    assert [row.label for row in only.rows] == ["sdpa"] and only.notes == ()


@pytest.mark.parametrize(
    "records",
    [[sample.quality("sdpa", "text")], [looked("sdpa", ((9.0,),), order="shuffled")]],
)
def test_trainings_not_looked_at_or_in_no_order_have_no_section(records):
    assert sections(analysed(records)) == []


def test_rollouts_are_drawn_and_wrong_answers_counted():
    record = looked("sdpa", ((9.0,),), "pathfinder", rollouts=(rollout(1), rollout(0), rollout(1)))
    (section,) = sections(analysed([record]))
    (figure,) = section.figures
    assert f"sdpa on pathfinder at scale mini, {SIDE} x {SIDE}, seed 0" in figure.title
    assert "2 of 3 answers are right" in figure.caption
    assert figure.svg.count("<image") == 6 and "label 1, said 0" in figure.svg


def test_at_most_six_models_have_pictures():
    records = [looked(f"m{n}", ((9.0,),), rollouts=(rollout(1),)) for n in range(8)]
    (section,) = sections(analysed(records))
    assert len(section.figures) == 6


def test_each_table_of_scores_has_its_learning_curves():
    records = [sample.quality(f"m{n}", task, 0.7) for n in range(13) for task in ("text", "image")]
    records += [told("sdpa", bits=1.9), sample.quality("gone", "text", status="oom")]
    first, second = learning.sections(analysed(records, [sample.quality("sdpa", "text")]))
    (figure,) = first.figures
    assert all(f">m{n}</text>" in figure.svg for n in range(13))
    assert "sdpa (reference)" in figure.alt and "gone" not in figure.alt
    assert all(f">{task}</text>" in figure.svg for task in ("text", "image"))
    assert second.setting.endswith("bits per byte") and "bytes" in second.figures[0].alt


def test_curves_are_means_over_seeds_of_every_validation():
    analysis = analysed([sample.quality("sdpa", "text", a, seed=s) for s, a in enumerate((0.5, 1))])
    points = learning.analyse(analysis, analysis.accuracies[0])
    assert points.groupby("step")["accuracy"].mean().to_dict() == pytest.approx(
        {100: 100 * 0.75 * (0.6 + 0.4 / 3), 200: 100 * 0.75 * (0.6 + 0.8 / 3), 300: 75.0}
    )
    without = msgspec.structs.replace(sample.quality("sdpa", "text"), curve=())
    assert learning.sections(analysed([without])) == []


def crossing(name, task="copy", *, layers=2, **more):
    """An encoder-decoder whose cross maps were looked at."""
    maps = tuple(pack_cross(np.random.default_rng(n).random((4, 7))) for n in range(layers))
    seen = TrainedAttention(examples=32, distances=(), cross_maps=maps)
    return msgspec.structs.replace(across(name, task, **more), attended=seen)


def test_cross_maps_are_drawn_layer_by_layer_and_have_no_distance():
    (section,) = sections(analysed([crossing("sdpa"), across("lstm", "copy")]))
    (figure,) = section.figures
    assert section.tables == ()
    assert figure.svg.count("<image") == 2
    assert "4 target tokens by 7 source tokens" in figure.alt
    assert "sdpa on copy at scale mini, seed 0" in figure.title


def test_maps_of_a_filled_cross_slot_are_those_of_its_mechanism():
    (section,) = sections(analysed([crossing("lstm", named=("decoder", "cross"))]))
    assert "sdpa beside lstm on copy" in section.figures[0].title


def test_distances_stand_beside_no_cross_map_and_are_explained_once():
    crossings = [crossing(name) for name in ("a", "b", "c")]
    apart = [looked("sdpa", ((9.0,),)), looked("sdpa", ((10.0,),), scale="small")]
    found = sections(analysed([*crossings, *apart]))
    # The slots come last, as they answer token by token.
    assert [len(one.tables) for one in found] == [1, 1, 0]
    first, second = (one.tables[0].caption for one in found[:2])
    assert first.endswith(second) and first != second


def test_a_look_across_that_failed_is_no_distance():
    lost = msgspec.structs.replace(across("sdpa", "copy"), method={"look_failed": "MemoryError"})
    (section,) = sections(analysed([lost]))
    assert section.tables == () and section.is_empty


def test_cross_maps_take_no_place_of_rollouts():
    maps = [crossing(f"a{n}") for n in range(8)]
    drawn = looked("sdpa", ((9.0,),), "pathfinder", rollouts=(rollout(1),))
    found = sections(analysed([*maps, drawn]))
    figures = [figure.id for one in found for figure in one.figures]
    assert sorted(figures) == [*(f"cross-{n}" for n in range(1, 7)), "rollout-1"]
