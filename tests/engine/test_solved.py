"""How many answers a task's own rule tells, and how many one answer to all."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt
import pytest
from engine_jobs import baselines

from lra.core.dataset import UNASKED, Split
from lra.core.protocol import DataSpec, Rows
from lra.engine.work.baseline import SOLVED_ROWS, _majority_share, _score_rule, run
from tasks.recall import Recall, RecallConfig


class Guesses(Recall):
    """Knows the answer to every other question, and of every token whether it is one."""

    def solve(self, split: Split) -> npt.NDArray[np.integer]:
        answers = super().solve(split)
        wrong = np.flatnonzero(answers != UNASKED)[::2]
        answers[wrong] += 1
        return answers


def test_tokens_that_nothing_is_asked_of_are_no_answers() -> None:
    split = Recall(RecallConfig(pairs=4), length=24).generate("test", 8)
    unasked = (split.labels == UNASKED).mean()
    assert unasked > 0.5
    assert _score_rule(Recall(RecallConfig(pairs=4), length=24), split) == {"exact_solver": 1.0}
    assert _score_rule(Guesses(RecallConfig(pairs=4), length=24), split) == {"exact_solver": 0.5}


def test_the_largest_class_is_of_what_is_asked() -> None:
    tokens = np.ones((3, 4), dtype=np.uint8)
    labels = [[UNASKED, 2, UNASKED, 1], [UNASKED] * 4, [2, UNASKED, UNASKED, UNASKED]]
    by_token = Split.of(list(tokens), np.array(labels).ravel(), by_token=True)
    assert _majority_share(by_token) == pytest.approx(2 / 3)
    assert _majority_share(Split.of(list(tokens), np.array([0, 5, 5]))) == pytest.approx(2 / 3)


def test_a_task_without_a_rule_has_no_share() -> None:
    class Unruled(Recall):
        def solve(self, split: Split) -> None:
            return None

    task = Unruled(RecallConfig(pairs=1), length=8)
    assert _score_rule(task, task.generate("test", 8)) == {}


def test_the_first_rows_are_tried() -> None:
    task = Guesses(RecallConfig(pairs=1), length=8)
    split = task.generate("test", SOLVED_ROWS + 100)
    tried: list[int] = []

    class Counts(Guesses):
        def solve(self, split: Split) -> npt.NDArray[np.integer]:
            tried.append(len(split))
            return super().solve(split)

    share = _score_rule(Counts(RecallConfig(pairs=1), length=8), split)["exact_solver"]
    assert tried == [SOLVED_ROWS] and share == pytest.approx(0.5, abs=0.01)


def test_a_task_with_a_source_has_all_simple_baselines(tmp_path: Path) -> None:
    data = DataSpec(
        task="lookup",
        length=6,
        rows=Rows(train=60, validation=10, test=20),
        parameters={"queries": 3, "keys": 8, "values": 4},
    )
    job = baselines(tmp_path)
    job = msgspec.structs.replace(job, cell=msgspec.structs.replace(job.cell, data=data))
    found = run(job.cell, job, lambda progress: None)
    scores = {name: metric.value for name, metric in found.metrics.items()}
    rules = {"majority", "current_token", "bag_of_tokens", "trees", "a value of the pairs"}
    assert set(scores) == {*rules, "exact_solver"} and scores["exact_solver"] == 1.0
    assert all(0.1 < scores[rule] < 0.9 for rule in rules)
    # Sixty rows ask three tokens each.
    assert all("180" in str(found.method[fit]) for fit in ("bag of tokens", "trees"))
