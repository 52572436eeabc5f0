"""Learning rates of the tuned track, orders of tokens, and models that answer at each token."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from lra.core.cells import BaselineCell, QualityCell
from lra.core.errors import UsageError
from lra.core.scales import load_scale, load_suite
from lra.engine.plan.spec import RunSpec
from lra.engine.plan.suite import plan_suite

SCALE = """
title = "tiny"
{rates}
[model]
layers = 1
width = 16
qkv_width = 16
heads = 2
mlp_width = 16
[training]
steps = 5
batch = 4
learning_rate = 1e-3
evaluate_every = 5
[lra2021.linformer]
rank = 3
[tasks]
[default]
length = 128
rows = {{train = 20, validation = 5, test = 5}}
"""


def planned(folder: Path, blocks: str, *, rates: str = "", **asked: object) -> list[QualityCell]:
    scale, suite = folder / "tiny.toml", folder / "suite.toml"
    scale.write_text(SCALE.format(rates=rates))
    suite.write_text('title = "tiny"\n' + blocks.replace("SCALE", f'scale = "{scale}"'))
    spec = RunSpec(
        suite=load_suite(str(suite)),
        mechanisms=("sdpa",),
        device="cpu",
        cache=str(folder.parent / "described"),
    )
    jobs = plan_suite(msgspec.structs.replace(spec, **asked))
    return [job.cell for job in jobs if isinstance(job.cell, QualityCell)]


TEXT = '[[quality]]\nSCALE\ntasks = ["text"]\n'


def test_each_rate_is_tried_with_each_seed(tmp_path: Path) -> None:
    asked = {"track": "tuned", "seeds": 2}
    cells = planned(tmp_path, TEXT, rates="rates = [0.5, 1.0, 2.0]", **asked)
    tried = [(cell.seed, cell.training.learning_rate) for cell in cells]
    assert tried == [(seed, rate) for seed in range(2) for rate in (5e-4, 1e-3, 2e-3)]
    assert {cell.track for cell in cells} == {"tuned"} and len({cell.id for cell in cells}) == 6


def test_matched_is_as_the_scale_has_it_and_another_cell(tmp_path: Path) -> None:
    rates = "rates = [1.0]"
    (matched,), (tuned,) = (
        planned(tmp_path, TEXT, rates=rates, track=track) for track in ("matched", "tuned")
    )
    assert matched.training == tuned.training and matched.id != tuned.id


def test_a_scale_without_rates_refuses_the_tuned_track(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"'tiny' has no learning rates to try; add e\.g\."):
        planned(tmp_path, TEXT, track="tuned")


def test_a_block_of_shuffled_input_is_for_whom_it_names(tmp_path: Path) -> None:
    blocks = TEXT + TEXT + 'order = "shuffled"\nonly = ["sdpa"]\n'
    cells = planned(tmp_path, blocks, mechanisms=("sdpa", "identity"))
    orders = [(cell.mechanism.name, cell.data.order) for cell in cells]
    assert orders == [("sdpa", "given"), ("identity", "given"), ("sdpa", "shuffled")]
    assert all(msgspec.structs.replace(c.data, order="given") == cells[0].data for c in cells)
    assert len({cell.id for cell in cells}) == 3
    assert ["data/shuffled" in cell.versions for cell in cells] == [False, False, True]


@pytest.mark.parametrize(
    ("block", "says"),
    [
        ('tasks = ["text"]\nonly = ["sdpaa"]', "unknown mechanism 'sdpaa'; did"),
        ('tasks = ["text", "recall"]\norder = "shuffled"', "task 'recall' asks for each token"),
    ],
)
def test_a_block_that_could_train_nothing_is_refused(tmp_path: Path, block: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        planned(tmp_path, f"[[quality]]\nSCALE\n{block}\n")


def test_the_certificate_puts_exact_attention_on_shuffled_input_beside_all_in_order(
    tmp_path: Path,
) -> None:
    """As its report reads it: exact attention is `sdpa` there, and only what stands in both orders,
    and is otherwise the same, has a line."""
    suite = load_suite("certificate")
    asked = ("sdpa", "sliding_window", "identity")
    spec = RunSpec(
        suite=suite, mechanisms=asked, device="cpu", cache=str(tmp_path.parent / "described")
    )
    cells = [job.cell for job in plan_suite(spec) if isinstance(job.cell, QualityCell)]
    found = {order: [c for c in cells if c.data.order == order] for order in ("given", "shuffled")}
    whole = ["listops", "text", "retrieval", "image", "pathfinder"]
    assert [(c.mechanism.name, c.data.task) for c in found["given"]] == [
        (name, task) for name in asked for task in [*whole, "recall", "bytes"]
    ]
    # The answers of the others stand at their tokens, which cannot be moved.
    in_order = [
        msgspec.structs.replace(
            c,
            data=msgspec.structs.replace(c.data, order="given"),
            versions={name: own for name, own in c.versions.items() if name != "data/shuffled"},
        )
        for c in found["shuffled"]
    ]
    assert in_order == [
        c for c in found["given"] if c.mechanism.name == "sdpa" and c.data.task in whole
    ]


def test_simple_baselines_are_of_the_given_order_alone(tmp_path: Path) -> None:
    suite = tmp_path / "suite.toml"
    planned(tmp_path, TEXT + TEXT + 'order = "shuffled"\n')
    spec = RunSpec(
        suite=load_suite(str(suite)),
        mechanisms=("sdpa",),
        device="cpu",
        cache=str(tmp_path.parent / "described"),
    )
    found = [job.cell for job in plan_suite(spec) if isinstance(job.cell, BaselineCell)]
    assert [cell.data.order for cell in found] == ["given"]


@pytest.mark.parametrize(
    ("task", "metric", "by_token"),
    [("text", "accuracy", False), ("recall", "accuracy", True), ("bytes", "bits_per_byte", True)],
)
def test_where_tokens_are_asked_the_model_is_causal_and_pools_nothing(
    tmp_path: Path, task: str, metric: str, by_token: bool
) -> None:
    (cell,) = planned(tmp_path, TEXT.replace("text", task))
    assert cell.metric == metric
    assert cell.model.causal == by_token
    assert cell.model.pooling == ("none" if by_token else "mean")


@pytest.mark.parametrize("task", ["text", "retrieval"])
def test_a_model_that_pools_nothing_is_refused_where_examples_are_asked(
    tmp_path: Path, task: str
) -> None:
    chosen = {"model.pooling": "none"}
    with pytest.raises(UsageError, match=f"^task '{task}' asks for one answer per example, "):
        planned(tmp_path, TEXT.replace("text", task), settings=chosen)
    (cell,) = planned(tmp_path, TEXT.replace("text", "recall"), settings=chosen)
    assert cell.model.pooling == "none"


@pytest.mark.parametrize(("rules", "rank"), [("fixed", 256), ("lra2021", 3)])
def test_the_originals_own_mechanisms_come_with_its_rules(
    tmp_path: Path, rules: str, rank: int
) -> None:
    (cell,) = planned(tmp_path, TEXT, mechanisms=("linformer",), rules=rules)
    assert cell.mechanism.config["rank"] == rank


@pytest.mark.parametrize(("task", "block"), [("listops", 50), ("image", 64), ("pathfinder", 64)])
def test_and_so_does_what_they_were_on_a_task(task: str, block: int) -> None:
    paper = load_scale("paper")
    chosen = paper.settings("block_local", "lra2021", task)
    assert chosen == {"block": block, "parity": "lra2021"}
    assert paper.settings("block_local", "fixed", task) == {}


def test_only_the_originals_protocol_tests_the_last_step() -> None:
    tested = {
        (name, scale.train_spec(task).tested)
        for name in ("mini", "small", "compact", "paper")
        for scale in [load_scale(name)]
        for task in scale.tasks
    }
    assert tested == {("mini", "best"), ("small", "best"), ("compact", "best"), ("paper", "last")}


@pytest.mark.parametrize(
    ("rules", "settings", "tested"),
    [
        ("fixed", {}, "best"),
        ("lra2021", {}, "last"),
        ("lra2021", {"training.tested": "best"}, "best"),
    ],
)
def test_the_originals_rules_test_the_last_step(
    tmp_path: Path, rules: str, settings: dict[str, str], tested: str
) -> None:
    (cell,) = planned(tmp_path, TEXT, rules=rules, settings=settings)
    assert cell.training.tested == tested


def test_nothing_is_tuned_where_validation_may_be_test(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="under the rules lra2021 is the test split of text"):
        planned(tmp_path, TEXT, rates="rates = [1.0]", rules="lra2021", track="tuned")


def test_a_task_of_one_length_is_refused_at_others(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"path_x has 16384 tokens, scale 'tiny' gives it 128"):
        planned(tmp_path, TEXT.replace("text", "path_x"))
