"""A release's folders: each goes to the task of its name, its length that of its pictures."""

from lra.core.scales import load_scale
from tasks.sources.release import release_sets

FOLDERS = {
    "listops-1000": "listops",
    "tsv_data": "retrieval",
    "pathfinder32": "pathfinder",
    "pathfinder64": "pathfinder64",
    "pathfinder128": "path_x",
    "pathfinder256": "pathfinder256",
}


def test_folders_go_to_their_tasks_and_pictures_to_the_task_of_their_length(tmp_path):
    for name in FOLDERS:
        (tmp_path / name).mkdir()
    found = release_sets(str(tmp_path))
    assert found == {task: tmp_path / name for name, task in FOLDERS.items()}
    for name, task in FOLDERS.items():
        if side := name.removeprefix("pathfinder") * name.startswith("pathfinder"):
            assert load_scale("paper").task(task).length == int(side) ** 2
