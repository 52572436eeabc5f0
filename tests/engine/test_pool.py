"""The pool: every ending a record, nothing done beside a timing.

Toy mechanisms end their workers in every way there is; the cells are real and so is the training.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import cast

import pytest
from diary import Diary
from engine_jobs import MakePool, Run, baselines, recalling, timing, training
from msgspec.structs import replace
from processes import gone

from lra.core.protocol import Machine
from lra.core.records import Failure, Metric, Record
from lra.engine.jobs import Job, Outcome
from lra.engine.machine.timing_lock import TimingLock
from lra.engine.process.launch import ForkServer
from lra.engine.process.pool import Pool, default_slots
from lra.engine.process.runner import Watcher
from lra.engine.process.supervisor import utc
from lra.store import Store


@pytest.fixture(scope="module")
def endings(
    server: ForkServer, cache: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Record]:
    """One run over toys that end in every way, by the name of the toy."""
    jobs = [
        *(
            timing(toy, cache)
            for toy in ("Killed", "Aborts", "Exits", "Vanishes", "Raises", "OutOfMemory", "Refuses")
        ),
        timing("TooLarge", cache, length=64),
        training("Diverges", cache, steps=200),
        timing("Toy", cache),
    ]
    with Store(tmp_path_factory.mktemp("endings")).locked() as store:
        found = {r.cell.mechanism.name: r for r in Pool(store, server, slots=1).run(jobs)}  # type: ignore[union-attr]
        assert {r.id: r for r in store.records()} == {r.id: r for r in found.values()}
    return found


@pytest.mark.parametrize(
    ("toy", "status", "kind", "words"),
    [
        ("Killed", "crash", "SIGKILL", "ended by SIGKILL"),
        ("Aborts", "crash", "SIGABRT", "ended by SIGABRT"),
        ("Exits", "error", "SystemExit", "sys.exit(0)"),
        ("Vanishes", "error", "NoResult", "exit code 0"),
        ("Raises", "error", "ValueError", "cannot use 'notes of mine.txt', sorry"),
        ("OutOfMemory", "oom", "MemoryError", "MemoryError"),
        ("TooLarge", "oom", "RuntimeError", "can't allocate memory"),
        ("Refuses", "unsupported", "UnsupportedError", "refuses whatever it is asked"),
        ("Diverges", "diverged", "Diverged", "no longer finite"),
    ],
)
def test_every_ending_has_its_status_and_one_line(
    endings: dict[str, Record], toy: str, status: str, kind: str, words: str
) -> None:
    record = endings[toy]
    assert record.failure is not None and record.failure.phase and not record.metrics
    assert (record.status, record.failure.type) == (status, kind)
    assert words in record.failure.message and "\n" not in record.failure.message


def test_a_figure_that_cannot_be_is_an_error_and_no_record_that_cannot_be_read(
    pool: MakePool, store: Store, cache: Path
) -> None:
    job, wrong = training("Toy", cache), {"test_accuracy": Metric.share(7.5)}
    found = Outcome(status="ok", metrics=wrong)
    saved = pool()._save(job, found, started_at=utc(), seconds=1.0)
    assert saved.status == "error" and not saved.metrics
    assert saved.failure is not None and "test_accuracy = 7.5" in saved.failure.message
    assert store.load(job.cell.id) == saved


def test_a_run_goes_on_after_every_ending(endings: dict[str, Record]) -> None:
    record = endings["Toy"]
    assert record.status == "ok"
    assert record.failure is None
    assert record.metrics["latency"].samples
    assert record.parameters
    assert record.seconds > 0.0
    assert record.provenance.libraries["torch"]
    assert record.provenance.host["cores_allowed"]


def test_the_tail_holds_the_last_words_and_no_path(endings: dict[str, Record]) -> None:
    failure = endings["Raises"].failure
    assert failure is not None
    assert "the last words" in failure.tail
    assert "in mischief" in failure.tail
    for record in endings.values():
        text = json.dumps([str(record.failure), record.method, record.provenance.host])
        for secret in (str(Path.home()), str(Path(__file__).parent), "secret", os.uname().nodename):
            assert secret not in text


def test_a_cell_that_takes_too_long_is_killed_with_its_children(
    pool: MakePool, cache: Path, tmp_path: Path
) -> None:
    class Patient(Watcher):
        """Takes the limit away after the first cell."""

        def finished(self, job: Job, record: Record) -> None:
            limited.timeout = None

    limited = pool(timeout=2.5, watcher=Patient())
    slow, good = limited.run([timing("Sleeps", cache, note=str(tmp_path)), timing("Toy", cache)])
    assert slow.status == "timeout"
    assert slow.failure is not None and "2.5 s" in slow.failure.message
    assert 2.5 <= slow.seconds < 10.0
    (note,) = tmp_path.glob("pids-*")
    assert gone(map(int, note.read_text().split()))
    assert good.status == "ok"


def test_lengths_beyond_one_that_ran_out_of_memory_are_skipped_not_omitted(
    run: Run, store: Store, cache: Path
) -> None:
    jobs = [timing("TooLarge", cache, length=length) for length in (32, 64, 128)]
    jobs.append(timing("TooLarge", cache, length=128, mode="train"))
    found = run(*jobs)
    assert [record.status for record in found] == ["ok", "oom", "skipped", "oom"]
    assert found[2].failure is not None and "length 64" in found[2].failure.message
    assert store.load(jobs[2].cell.id) is not None


def test_what_ran_out_of_memory_in_an_earlier_run_is_remembered(run: Run, cache: Path) -> None:
    short, *longer = (timing("TooLarge", cache, length=length) for length in (64, 128, 256))

    def ended(*jobs: Job, **terms: object) -> list[str]:
        return [record.status for record in run(*jobs, **terms)]

    assert ended(short) == ["oom"]
    diary = Diary()
    run(*longer, watcher=diary)
    assert diary.lines == ["skipped TooLarge forward 128", "skipped TooLarge forward 256"]
    # The shortest is itself tried again; without pruning, so is a longer one.
    assert ended(short, longer[0]) == ["oom", "skipped"]
    # Also where the longer one comes first, as in a rerun that goes on where it was stopped.
    assert ended(longer[0], short) == ["skipped", "oom"]
    assert ended(longer[0], prune=False) == ["oom"]


def test_what_ran_out_of_time_leaves_out_only_what_has_no_more_of_it(
    run: Run, store: Store, cache: Path, tmp_path: Path
) -> None:
    short, longer = (timing("Sleeps", cache, length=n, note=str(tmp_path)) for n in (32, 64))

    def ended(job: Job, timeout: float) -> str:
        (record,) = run(job, timeout=timeout)
        return record.status

    assert ended(short, 0.5) == "timeout"
    # Time added by a loaded machine is no patience.
    store.save(replace(cast(Record, store.load(short.cell.id)), seconds=0.6))
    assert ended(longer, 0.5) == "skipped"
    assert ended(longer, 1.0) == "timeout"


def test_an_old_end_of_another_replicate_leaves_out_nothing_once_its_length_is_tried(
    run: Run, store: Store, cache: Path
) -> None:
    plan = [timing("Toy", cache, length=length) for _ in range(2) for length in (32, 64)]
    plan[2:] = [replace(one, cell=replace(one.cell, replicate=1)) for one in plan[2:]]
    failed = {"status": "oom", "failure": Failure(type="MemoryError", message="")}
    for one in (plan[0], plan[2]):
        (ok,) = run(one)
        store.save(replace(ok, **failed))
    (left_out,) = run(plan[1])
    assert left_out.status == "skipped"
    assert [record.status for record in run(*plan)] == ["ok"] * 4


def test_a_training_becomes_a_record_with_its_curve(run: Run, store: Store, cache: Path) -> None:
    diary = Diary()
    (record,) = run(training("Toy", cache, steps=20, evaluate_every=10), watcher=diary)
    assert record.status == "ok"
    assert {name: (m.unit, m.better) for name, m in record.metrics.items()} == {
        "test_accuracy": ("share", "higher"),
        "test_loss": ("nat", "lower"),
        "validation_accuracy": ("share", "higher"),
        "training_seconds": ("s", "lower"),
        "steps_per_second": ("1/s", "higher"),
    }
    assert [point.step for point in record.curve] == [10, 20]
    assert diary.losses and diary.losses[-1] == record.curve[-1].train_loss
    assert record.best_step in (10, 20)
    assert record.parameters is not None and record.parameters > 1000
    assert record.method["continued"] is False
    assert not store.checkpoint(record.id).exists()


def test_what_goes_wrong_after_a_training_does_not_lose_it(run: Run, cache: Path) -> None:
    (record,) = run(training("NoOracle", cache, steps=2, evaluate_every=2))
    assert record.status == "ok" and "test_accuracy" in record.metrics
    assert record.attended is None
    assert record.method["look_failed"] == "NotImplementedError"


@pytest.mark.parametrize(
    ("mechanism", "config", "agreement"),
    [("linear", {}, Metric.share(1.0)), ("sinkhorn", {"block": 8}, None)],
)
def test_where_tokens_are_asked_for_what_decodes_is_tried_at_it(
    run: Run, cache: Path, mechanism: str, config: dict[str, int], agreement: Metric | None
) -> None:
    (record,) = run(recalling(mechanism, cache, **config))
    assert record.status == "ok" and "decode_failed" not in record.method
    assert record.metrics.get("decode_agreement") == agreement


def test_baselines_become_a_record(run: Run, cache: Path) -> None:
    (record,) = run(baselines(cache))
    assert record.status == "ok"
    assert {"majority", "bag_of_tokens"} <= set(record.metrics)
    assert record.metrics["exact_solver"].value == 1.0
    majority = record.metrics["majority"].value
    assert majority is not None
    assert majority <= record.method["largest class of the test split"] < 0.5
    for metric in record.metrics.values():
        assert (metric.unit, metric.better) == ("share", "higher")
        assert metric.value is not None and 0.0 <= metric.value <= 1.0


def test_real_data_has_no_rule_that_solves_it(run: Run, cache: Path, tmp_path: Path) -> None:
    for split in ("train", "val", "test"):
        rows = "".join(f"( ( ( [MAX {n} ) 0 ) ] )\t{n}\n" for n in range(10))
        (tmp_path / f"basic_{split}.tsv").write_text(f"Source\tTarget\n{rows}")
    (record,) = run(baselines(cache, tmp_path))
    assert record.status == "ok" and "majority" in record.metrics
    assert "exact_solver" not in record.metrics and "exact solver" not in record.method


def test_as_many_cells_run_side_by_side_as_cores_allow_and_one_on_a_gpu(cache: Path) -> None:
    def jobs(*devices: str, threads: int = 1) -> list[Job]:
        here = Machine(processor="toy", cores=16)
        trained = training("Toy", cache)
        cells = [
            replace(trained.cell, machine=here, device=device, threads=threads)
            for device in devices
        ]
        found = [replace(trained, cell=cell) for cell in cells]
        return [*found, timing("Toy", cache)]

    assert default_slots(jobs("cpu", "cpu")) == 16
    assert default_slots([*jobs("cpu"), *jobs("cpu", threads=3)]) == 5
    assert default_slots(jobs("cpu", threads=32)) == 1
    on_three = [replace(job, devices=3) for job in jobs("cpu", threads=2)[:1]]
    assert default_slots([*jobs("cpu"), *on_three]) == 2
    assert default_slots(jobs("cpu", "cuda")) == 1
    assert default_slots(jobs()) == 1


def test_timing_waits_until_it_is_alone(run: Run, cache: Path) -> None:
    diary = Diary()
    jobs = [
        training("Toy", cache, seed=0),
        training("Toy", cache, seed=1),
        timing("Toy", cache),
        training("Toy", cache, seed=2),
    ]
    run(*jobs, slots=3, watcher=diary)
    events = [line.partition(" ")[0] for line in diary.lines]
    assert events == ["start", "start", "ok", "ok", "start", "ok", "start", "ok"]
    assert diary.lines[4:6] == ["start Toy forward 32", "ok Toy forward 32"]


def test_timing_waits_for_another_runs_timing(pool: MakePool, cache: Path, tmp_path: Path) -> None:
    other = TimingLock(tmp_path / "lock")
    assert other.acquire()
    told: list[str] = []

    class Releases(Watcher):
        def waiting(self, job: Job, whom: str) -> None:
            told.append(job.label)
            other.release()

    waiting = pool(watcher=Releases())
    waiting._lock = TimingLock(tmp_path / "lock")
    (record,) = waiting.run([timing("Toy", cache)])
    assert record.status == "ok"
    assert told == ["Toy forward 32"]
    assert other.acquire()
    other.release()
