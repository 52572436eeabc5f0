"""Learning rates of the tuned track, orders of tokens, and models that answer at each token."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from engine_jobs import SMALL
from msgspec.structs import replace

from lra.core.cells import BaselineCell, QualityCell
from lra.core.errors import UsageError
from lra.core.scales import load_scale, load_suite
from lra.engine.plan.spec import RunSpec
from lra.engine.plan.suite import plan_suite

SCALE = f"""
title = "tiny"
{{rates}}
{SMALL}
[lra2021.linformer]
rank = 3
[tasks]
[default]
length = 128
rows = {{{{train = 20, validation = 5, test = 5}}}}
"""


def planned(
    folder: Path, blocks: str, *, rates: str = "", kind: type = QualityCell, **asked: object
) -> list[Any]:
    """Cells of a kind that a suite of these blocks has."""
    scale, suite = folder / "tiny.toml", folder / "suite.toml"
    scale.write_text(SCALE.format(rates=rates))
    suite.write_text('title = "tiny"\n' + blocks.replace("SCALE", f'scale = "{scale}"'))
    return cells_of(str(suite), folder, kind, **asked)


def cells_of(suite: str, folder: Path, kind: type = QualityCell, **asked: object) -> list[Any]:
    spec = RunSpec(
        suite=load_suite(suite), mechanisms=("sdpa",), device="cpu",
        cache=str(folder.parent / "described"),
    )  # fmt: skip
    return [job.cell for job in plan_suite(replace(spec, **asked)) if isinstance(job.cell, kind)]


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


@pytest.mark.parametrize(
    ("task", "asked", "named"),
    [
        ("text", {"track": "tuned"}, "'tiny' has no learning rates"),
        # There, validation may be test.
        ("text", {"rates": "rates = [1.0]", "rules": "lra2021", "track": "tuned"}, "of text"),
        ("path_x", {}, "path_x has 16384 tokens, .* 128"),
    ],
)
def test_trainings_that_cannot_be_are_refused(
    tmp_path: Path, task: str, asked: dict[str, Any], named: str
) -> None:
    with pytest.raises(UsageError, match=named):
        planned(tmp_path, TEXT.replace("text", task), **asked)


def test_a_block_of_shuffled_input_is_for_whom_it_names(tmp_path: Path) -> None:
    blocks = TEXT + TEXT + 'order = "shuffled"\nonly = ["sdpa"]\n'
    cells = planned(tmp_path, blocks, mechanisms=("sdpa", "identity"))
    orders = [(cell.mechanism.name, cell.data.order) for cell in cells]
    assert orders == [("sdpa", "given"), ("identity", "given"), ("sdpa", "shuffled")]
    assert all(replace(c.data, order="given") == cells[0].data for c in cells)
    assert len({cell.id for cell in cells}) == 3
    assert ["data/shuffled" in cell.versions for cell in cells] == [False, False, True]


@pytest.mark.parametrize(
    ("block", "says"),
    [
        ('tasks = ["text"]\nonly = ["sdpaa"]', "'sdpaa'"),
        ('tasks = ["text", "recall"]\norder = "shuffled"', "'recall'"),
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
    asked = ("sdpa", "sliding_window", "identity")
    cells = cells_of("certificate", tmp_path, mechanisms=asked)
    found = {order: [c for c in cells if c.data.order == order] for order in ("given", "shuffled")}
    whole = ["listops", "text", "retrieval", "image", "pathfinder"]
    assert [(c.mechanism.name, c.data.task) for c in found["given"]] == [
        (name, task) for name in asked for task in [*whole, "recall", "bytes"]
    ]
    # The answers of the others stand at their tokens, which cannot be moved.
    in_order = [
        replace(
            c,
            data=replace(c.data, order="given"),
            versions={name: own for name, own in c.versions.items() if name != "data/shuffled"},
        )
        for c in found["shuffled"]
    ]
    assert in_order == [
        c for c in found["given"] if c.mechanism.name == "sdpa" and c.data.task in whole
    ]


def test_simple_baselines_are_of_the_given_order_alone(tmp_path: Path) -> None:
    found = planned(tmp_path, TEXT + TEXT + 'order = "shuffled"\n', kind=BaselineCell)
    assert [cell.data.order for cell in found] == ["given"]


@pytest.mark.parametrize(
    ("task", "metric", "by_token"),
    [
        ("text", "accuracy", False),
        ("recall", "accuracy", True),
        ("bytes", "bits_per_byte", True),
        ("bigrams", "nat", True),
    ],
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
    with pytest.raises(UsageError, match=f"^task '{task}'"):
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
