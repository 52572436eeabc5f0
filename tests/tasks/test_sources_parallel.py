"""Generated sets made by several processes: the same bytes, also after a kill; no one left over."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from lra.core.catalogue import find
from lra.core.dataset import SPLITS
from lra.core.errors import DataError
from lra.core.loading import load
from lra.core.protocol import DataSpec, Rows
from lra.core.scales import load_scale
from tasks.contract import TaskConfig
from tasks.sources.opening import open_or_prepare
from tasks.sources.parallel import generate
from tasks.sources.preparing import Watch, stretches

STEPS = '''
"""Rows whose tokens are their number; what the environment names happens at row 30."""
import os
import time
import numpy as np
from lra.core.cards import TaskCard
from lra.core.dataset import Split
from tasks.contract import Task, TaskConfig


class Steps(Task):
    """Seven rows a part."""

    card = TaskCard(title="steps", source="", classes=2, vocabulary=300)
    Config = TaskConfig
    part_rows = 7

    def generate(self, split, rows):
        return self.generate_part(split, 0, rows)

    def generate_part(self, split, first, rows):
        asked = os.environ.get("AT_30", "")
        if first <= 30 < first + rows and asked == "die":
            os._exit(9)
        if first <= 30 < first + rows and asked == "hang":
            time.sleep(60)
        numbers = range(first, first + rows)
        return Split.of([np.full(1 + n % 5, n, np.uint16) for n in numbers], np.arange(rows) % 2)
'''
SPEC = DataSpec(task="steps", length=9, rows=Rows(train=50, validation=3, test=15))


@pytest.fixture
def steps(tmp_path):
    (tmp_path / "steps.py").write_text(STEPS)
    return str(tmp_path / "steps.py")


class Names(Watch):
    def __init__(self):
        self.made = []

    def begun(self, parts, done):
        self.done = done

    def part(self, name):
        self.made.append(name)


def content(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def opened(steps, folder, watch):
    task = load(find("task", steps))(TaskConfig(), length=9)
    open_or_prepare(task, SPEC, None, folder, watch)
    return content(folder)


@pytest.fixture
def undisturbed(steps, tmp_path):
    return opened(steps, tmp_path / "undisturbed" / "f00d", Names())


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "cache").mkdir()
    return tmp_path / "cache" / "f00d"


def test_two_processes_make_what_one_makes(steps, folder, undisturbed):
    watch = Names()
    assert generate(steps, SPEC, folder, 2, watch)
    assert content(folder) == undisturbed
    assert watch.done == 0 and len(watch.made) == 8 + 1 + 3
    assert watch.made[1] == "train, 7 rows from 7" and watch.made[-1] == "test, 1 rows from 14"
    assert not generate(steps, SPEC, folder, 2)


def test_a_process_that_is_killed_is_one_line_and_a_run_goes_on(
    steps, folder, undisturbed, monkeypatch
):
    monkeypatch.setenv("AT_30", "die")
    with pytest.raises(DataError, match=r"steps.* killed"):
        generate(steps, SPEC, folder, 1)
    monkeypatch.delenv("AT_30")
    watch = Names()
    assert opened(steps, folder, watch) == undisturbed
    assert watch.done > 0 and watch.done + len(watch.made) == 12
    assert list(folder.parent.iterdir()) == [folder]


KILLED = """
import sys
from pathlib import Path
from lra.core.protocol import DataSpec, Rows
from tasks.sources.parallel import generate
if __name__ == "__main__":
    rows = Rows(train=50, validation=3, test=15)
    generate(sys.argv[1], DataSpec(task="steps", length=9, rows=rows), Path("f00d"), 2)
"""


def test_after_a_kill_nobody_is_left_and_the_next_goes_on(steps, tmp_path, folder, undisturbed):
    (tmp_path / "killed.py").write_text(KILLED)
    first = subprocess.Popen(
        [sys.executable, str(tmp_path / "killed.py"), steps],
        cwd=folder.parent,
        env={**os.environ, "AT_30": "hang", "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    journal = folder.parent / ".f00d.draft" / "journal.json"
    until(lambda: journal.is_file() and b'"parts":4' in journal.read_bytes())
    workers = Path(f"/proc/{first.pid}/task/{first.pid}/children").read_text().split()
    assert len(workers) >= 2
    first.send_signal(signal.SIGKILL)
    first.wait()
    until(lambda: not any(map(alive, workers)))
    watch = Names()
    assert generate(steps, SPEC, folder, 1, watch)
    assert watch.done == 4 and content(folder) == undisturbed


def until(true):
    end = time.monotonic() + 30
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize(("name", "parts"), [("pathfinder", [4, 1, 1]), ("text", [1, 1, 1])])
def test_stretches_put_together_are_the_whole(name, parts, monkeypatch):
    monkeypatch.setattr("tasks.pathfinder._PIXELS_OF_A_PART", 13 * 64)
    kind, settings = load(find("task", name)), load_scale("mini").task(name)
    task = kind(kind.Config(**settings.parameters), length=settings.length)
    rows = Rows(train=40, validation=13, test=1)
    due = stretches(task, rows)
    assert [sum(one.split == split for one in due) for split in SPLITS] == parts
    for split in SPLITS:
        whole = task.generate(split, rows.of(split))
        pieces = [one.made(task) for one in due if one.split == split]
        assert np.array_equal(np.concatenate([piece.tokens for piece in pieces]), whole.tokens)
        assert np.array_equal(np.concatenate([piece.labels for piece in pieces]), whole.labels)
