"""A run that stops, by its budget, a signal or a failure: nothing finished lost, nothing running.

Trainings that stop are real, and continue; toy mechanisms sleep.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
from diary import Diary
from engine_jobs import MakePool, Run, baselines, timing, training
from processes import alive, gone, wait_until

from lra.core.errors import StoreError
from lra.core.records import Record
from lra.engine.jobs import Job, Progress
from lra.engine.machine.timing_lock import TimingLock
from lra.engine.order import lost_time
from lra.engine.order.admission import Admission
from lra.engine.order.budget import Budget
from lra.engine.order.lost_time import LostTime, seconds_needed
from lra.engine.process.launch import ForkServer, Worker
from lra.engine.process.pool import Pool
from lra.engine.process.runner import RunStopped, Watcher
from lra.store import Store


def test_a_budget_stops_a_long_training_which_continues_next_time(
    pool: MakePool, store: Store, cache: Path
) -> None:
    steps, now = 120, [0.0]
    job = training("Slow", cache, steps=steps, evaluate_every=30)
    never = timing("Toy", cache)
    diary = Diary(at_training=lambda: now.__setitem__(0, 99.0))
    first = pool(budget=Budget(100, lambda: now[0]), watcher=diary)
    assert list(first.run([job, never])) == []
    assert [left.label for left in first.left] == ["Slow listops", "Toy forward 32"]
    assert diary.lines == ["start Slow listops", "left Slow listops"]
    assert store.records() == []
    assert store.checkpoint(job.cell.id).is_file()

    rest = Diary()
    again = pool(watcher=rest)
    (continued,) = again.run([job])
    assert again.left == [] and continued.method["continued"] is True
    assert min(rest.steps[job.cell.id]) > max(diary.steps[job.cell.id])
    assert not store.checkpoint(job.cell.id).exists()


def test_short_stretches_add_up_to_the_same_training_as_one_long_one(
    run: Run, store: Store, cache: Path
) -> None:
    job = training("Slow", cache, steps=60, evaluate_every=20)
    reached: list[int] = []
    stretches = 0
    while store.load(job.cell.id) is None:
        now = [0.0]
        diary = Diary(at_training=lambda now=now: now.__setitem__(0, 99.0))
        run(job, budget=Budget(100, lambda now=now: now[0]), watcher=diary)
        # None where only the test was left to do.
        steps = diary.steps.get(job.cell.id, [])
        reached += steps
        stretches += bool(steps)
    assert stretches >= 2 and reached == sorted(reached), "it began again"

    # A decay of 1e-30 is another cell and the same arithmetic.
    straight = training("Slow", cache, steps=60, evaluate_every=20, weight_decay=1e-30)
    (uninterrupted,) = run(straight)
    added = store.load(job.cell.id)
    assert added is not None and added.method["continued"] is True
    assert added.metrics["test_loss"] == uninterrupted.metrics["test_loss"]
    assert [p.train_loss for p in added.curve] == [p.train_loss for p in uninterrupted.curve]


def test_what_does_not_fit_and_cannot_be_continued_is_not_started(
    pool: MakePool, cache: Path
) -> None:
    """The training goes on another time; the others would be lost."""
    jobs = [baselines(cache), timing("Toy", cache), training("Slow", cache, steps=400)]
    diary = Diary(at_training=lambda: now.__setitem__(0, 99.0))
    now = [0.0]
    budget = Budget(100, lambda: now[0])
    stretch = Admission(lambda: budget.left, jobs, {job.cell.id: 95.0 for job in jobs})
    cut = pool(budget=budget, admits=stretch.admits, watcher=diary)
    assert list(cut.run(jobs)) == []
    assert diary.lines == ["start Slow listops", "left Slow listops"]
    assert cut.left == jobs[:2] + cut.left[2:] and len(cut.left) == 3


def test_what_was_lost_is_not_tried_again_in_as_short_a_time(
    pool: MakePool, store: Store, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(lost_time, "time", SimpleNamespace(monotonic=lambda: now[0]))

    class Passes(Diary):
        """Time passes as soon as a cell runs."""

        def progress(self, job: Job, progress: Progress) -> None:
            now[0] += 99.0

    job = timing("Sleeps", cache)
    for lines in (["start Sleeps forward 32", "left Sleeps forward 32"], []):
        budget, diary = Budget(100, lambda: now[0]), Passes()
        least = seconds_needed(store, job)
        known = {} if least is None else {job.cell.id: least}
        stretch = Admission(lambda budget=budget: budget.left, [job], known)
        cut = pool(budget=budget, admits=stretch.admits, watcher=LostTime(store, diary))
        assert list(cut.run([job])) == [] and cut.left[0].cell == job.cell
        assert diary.lines == lines


@pytest.mark.usefixtures("no_nohup")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_saves_the_training_and_ends_the_run(
    pool: MakePool, store: Store, cache: Path, number: signal.Signals
) -> None:
    before = signal.getsignal(number)
    jobs = [
        timing("Toy", cache),
        training("Slow", cache, steps=400),
        timing("Toy", cache, length=8),
    ]
    cut = pool(watcher=Diary(at_training=lambda: os.kill(os.getpid(), number)))
    with pytest.raises(RunStopped, match="2 are left") as stopped:
        list(cut.run(jobs))
    assert stopped.value.exit_code == 130
    assert [record.id for record in store.records()] == [jobs[0].cell.id]
    assert [job.cell.id for job in cut.left] == [jobs[1].cell.id, jobs[2].cell.id]
    assert store.checkpoint(jobs[1].cell.id).is_file()
    assert signal.getsignal(number) == before


def test_a_second_ctrl_c_does_not_wait(
    pool: MakePool, store: Store, cache: Path, tmp_path: Path
) -> None:
    class Impatient(Watcher):
        def progress(self, job: Job, progress: Progress) -> None:
            if progress.phase == "first call":
                os.kill(os.getpid(), signal.SIGINT)
                os.kill(os.getpid(), signal.SIGINT)

    # It ignores SIGTERM, as a worker deep in a library does.
    job = timing("Deaf", cache, note=str(tmp_path))
    cut = pool(watcher=Impatient())
    with pytest.raises(RunStopped, match="Ctrl-C"):
        list(cut.run([job]))
    assert store.records() == [] and cut.left[0].cell.id == job.cell.id


def test_a_worker_that_was_never_forked_gives_back_what_it_held(
    store: Store, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "never_there.py").write_text("import time\ntime.sleep(60)\n")
    monkeypatch.syspath_prepend(str(tmp_path))

    class Impatient(Watcher):
        def started(self, job: Job) -> None:
            for _ in range(2):
                os.kill(os.getpid(), signal.SIGINT)

    workers: list[Worker] = []
    with ForkServer("never_there") as server:
        start = server.start
        monkeypatch.setattr(server, "start", lambda job: workers.append(start(job)) or workers[0])
        pool = Pool(store, server, slots=1, watcher=Impatient())
        pool._lock = TimingLock(tmp_path / "lock")
        with pytest.raises(RunStopped, match="Ctrl-C"):
            list(pool.run([timing("Toy", cache)]))
        # It would see the closed socket only after its import.
        server._process.kill()
    assert len(pool.left) == 1
    assert workers[0].connection.closed
    assert TimingLock(tmp_path / "lock").acquire()


def test_giving_up_between_two_records_stops_what_runs(
    pool: MakePool, store: Store, cache: Path
) -> None:
    jobs = [training("Toy", cache), training("Slow", cache, steps=400)]
    cut = pool(slots=2)
    run = cut.run(jobs)
    assert next(run).id == jobs[0].cell.id
    run.close()
    assert [record.id for record in store.records()] == [jobs[0].cell.id]
    assert [job.cell.id for job in cut.left] == [jobs[1].cell.id]


def test_a_store_that_fails_ends_the_run_with_its_error(
    run: Run, store: Store, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(record: Record) -> None:
        raise StoreError("full")

    monkeypatch.setattr(store, "save", full)
    with pytest.raises(StoreError, match="full"):
        run(timing("Toy", cache))


RUN = """
import sys
sys.path[:0] = sys.argv[2:]
from pathlib import Path
from engine_jobs import baselines, timing, training
from lra.engine.machine import timing_lock
from lra.engine.process.pool import Pool
from lra.engine.process.runner import RunStopped
from lra.engine.process.launch import ForkServer
from lra.store import Store

place = Path(sys.argv[1])
timing_lock._NAME = str(place / "lock")
jobs = [timing("Toy", place), timing("Sleeps", place, note=str(place))]
if __name__ == "__main__":
    try:
        with ForkServer() as server, Store(place / "store").locked() as store:
            for record in Pool(store, server, slots=1).run(jobs):
                print(record.id, server._process.pid, flush=True)
    except RunStopped as stopped:
        sys.exit(stopped.exit_code)
"""


@contextmanager
def launch(place: Path) -> Iterator[subprocess.Popen[str]]:
    """Start a run of its own, as leader of a group as under a terminal; it ends with the test."""
    folders = [str(Path(__file__).parents[2]), str(Path(__file__).parent)]
    with subprocess.Popen(
        [sys.executable, "-c", RUN, str(place), *folders],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as run:
        try:
            yield run
        finally:
            run.kill()


STOPPED = [
    "kill -9 of the run",
    "Ctrl-C at the terminal",
    "SIGTERM to all at once",
    "SIGHUP to all at once",
]


@pytest.mark.usefixtures("no_nohup")
@pytest.mark.parametrize("how", STOPPED)
def test_a_run_that_is_stopped_from_outside_leaves_nothing_running_and_loses_nothing(
    tmp_path: Path, how: str
) -> None:
    with launch(tmp_path) as run:
        assert run.stdout is not None
        finished, server_pid = run.stdout.readline().split()
        assert wait_until(lambda: bool(list(tmp_path.glob("pids-*"))))
        (note,) = tmp_path.glob("pids-*")
        pids = [int(server_pid), *map(int, note.read_text().split())]
        assert all(alive(pid) for pid in pids)
        if how == "kill -9 of the run":
            run.kill()
            assert run.wait(20) == -signal.SIGKILL
        elif how.endswith("to all at once"):
            # As Slurm and systemd send it; the run, which knows what to do, may be the last.
            for group in (os.getpgid(pids[1]), int(server_pid), run.pid):
                os.killpg(group, signal.Signals[how.split()[0]])
            assert run.wait(20) == 130
        else:
            os.killpg(run.pid, signal.SIGINT)
            assert run.wait(20) == 130
    assert gone(pids)
    assert [record.id for record in Store(tmp_path / "store").records()] == [finished]
