"""The mini suite tests attention: simple baselines and no mixing stay far below exact attention."""

import json
import os
import sys
from pathlib import Path
from statistics import mean
from subprocess import run

import pytest

TASKS = ["listops", "text", "retrieval", "image", "pathfinder"]
SEEDS = 3
MARGIN = 0.10


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    """All records of exact attention, no mixing and the simple baselines, as plain JSON."""
    folder = tmp_path_factory.mktemp("mini")
    command = [sys.executable, "-m", "lra", "run", "--impl", "sdpa,identity", "--quiet"]
    command += ["--seeds", str(SEEDS), "--task", ",".join(TASKS), "--store", str(folder)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[1])}
    run(command, check=True, cwd=folder, env=environment)
    return [json.loads(path.read_bytes()) for path in folder.glob("*.json")]


def accuracies(records, task, mechanism):
    """Test accuracy of one seed after the other, of 1."""
    found = [
        record["metrics"]["test_accuracy"]["value"]
        for record in records
        if record["cell"]["type"] == "quality"
        and record["cell"]["data"]["task"] == task
        and record["cell"]["mechanism"]["name"] == mechanism
    ]
    assert len(found) == SEEDS
    return found


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
def test_exact_attention_beats_every_baseline_by_ten_points(task, records):
    """Over three seeds; no mixing trains for the same steps with the same learning rates."""
    simple = next(
        record
        for record in records
        if record["cell"]["type"] == "baseline" and record["cell"]["data"]["task"] == task
    )
    assert simple["cell"]["data"]["rows"]["test"] >= 2000
    exact = mean(accuracies(records, task, "sdpa"))
    assert exact - mean(accuracies(records, task, "identity")) >= MARGIN
    for name, accuracy in simple["metrics"].items():
        assert exact - accuracy["value"] >= MARGIN, name
