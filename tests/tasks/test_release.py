"""A release's folders: each goes to the task of its name, its length that of its pictures."""

import math

from lra.core.scales import load_scale
from tasks.sources.release import release_sets

SIDES = (32, 64, 128, 256)


def test_pictures_go_to_the_task_whose_sequences_are_as_long(tmp_path):
    for side in SIDES:
        (tmp_path / f"pathfinder{side}").mkdir()
    found = release_sets(str(tmp_path))
    lengths = {task: load_scale("paper").task(task).length for task in found}
    assert sorted(map(math.isqrt, lengths.values())) == list(SIDES)
    for task, folder in found.items():
        assert folder == tmp_path / f"pathfinder{math.isqrt(lengths[task])}"


def test_lists_and_papers_go_to_their_tasks(tmp_path):
    for name in ("listops-1000", "tsv_data"):
        (tmp_path / name).mkdir()
    assert release_sets(str(tmp_path)) == {
        "listops": tmp_path / "listops-1000",
        "retrieval": tmp_path / "tsv_data",
    }
