"""A training that several processes share: one record, and none of them is lost without a word."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from unittest.mock import patch

import msgspec
import numpy as np
import pytest
import torch
from diary import Diary
from engine_jobs import MakePool, Run, shared, training
from processes import alive, descendants, gone, listening, wait_until
from torch.distributed.elastic.multiprocessing.errors import ProcessFailure

import lra
from lra.core.errors import LraError
from lra.engine.jobs import LOST, Job, Progress
from lra.engine.process import torchrun
from lra.engine.process.launch import ForkServer
from lra.engine.process.runner import RunStopped
from lra.store import Store
from lra.training.ranks import Joined


def ranks_of(server: ForkServer) -> list[int]:
    """Processes that train for a worker of this server: their command names its folder."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            command = (place / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue
        if "lra.engine.process.rank" in command and str(server._folder) in command:
            found.append(int(place.name))
    return found


def test_a_killed_process_costs_no_number(
    run: Run, store: Store, cache: Path, tmp_path: Path
) -> None:
    killed = shared("KilledOnce", cache, note=tmp_path, evaluate_every=10)
    whole = shared("Toy", cache, evaluate_every=10)
    # Another cell and the same arithmetic.
    alone = training("Toy", cache, evaluate_every=10, weight_decay=1e-30)
    once, twin, one = run(killed, whole, alone)
    assert (tmp_path / "rank-1").exists()
    assert [r.status for r in (once, twin, one)] == ["ok"] * 3
    assert [r.method["devices"] for r in (once, twin, one)] == [2, 2, 1]
    assert [r.method["continued"] for r in (once, twin, one)] == [True, False, False]
    assert once.metrics["test_loss"] == twin.metrics["test_loss"]
    # Sums of losses go on in one process.
    losses = [[p.train_loss for p in r.curve] for r in (once, twin, one)]
    assert len(losses[0]) == 2 and losses[0] == pytest.approx(losses[1], rel=1e-12)
    assert losses[1] == pytest.approx(losses[2], rel=1e-4)
    assert twin.metrics["test_loss"].value == pytest.approx(one.metrics["test_loss"].value, 1e-4)
    assert not store.checkpoint(killed.cell.id).exists()


def test_how_a_shared_training_ends_is_one_row(run: Run, cache: Path) -> None:
    diary = Diary()
    diverged, raised = run(shared("Diverges", cache), shared("Raises", cache), watcher=diary)
    assert diverged.status == "diverged" and diverged.method["devices"] == 2
    assert raised.status == "error" and raised.failure is not None
    assert "sorry" in raised.failure.message and raised.failure.phase == "train"
    assert diary.lines[0] == "start Diverges listops on 2 devices"


def test_fewer_rows_than_processes_are_refused() -> None:
    second = Joined.__new__(Joined)
    second.index, second.count = 1, 2
    rows, lengths = np.array([7, 8, 9]), np.array([30, 10, 20])
    assert list(second.share(rows, lengths)) == [9]
    with pytest.raises(LraError, match=r"1 rows .* 2 devices"):
        second.share(rows[:1], lengths[:1])


@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)]
)
def test_a_signal_saves_what_two_processes_train_and_a_rerun_goes_on(
    pool: MakePool, server: ForkServer, store: Store, cache: Path, number: signal.Signals
) -> None:
    job = shared("Slow", cache, steps=100, evaluate_every=50)
    seen: list[int] = []
    sockets: list[tuple[IPv4Address | IPv6Address, int]] = []

    def once() -> None:
        # Far beyond the first step that a training from the start would tell of.
        if not seen and diary.steps[job.cell.id][-1] >= 30:
            seen.extend(ranks_of(server))
            sockets.extend(listening(descendants(server._process.pid)))
            os.kill(os.getpid(), number)

    diary = Diary(at_training=once)
    with pytest.raises(RunStopped, match="1 are left"):
        list(pool(watcher=diary).run([job]))
    assert len(seen) == 2 and gone(seen) and not ranks_of(server)
    # Nobody beyond this machine reaches them.
    assert sockets and all(address.is_loopback for address, _ in sockets)
    assert store.records() == [] and store.checkpoint(job.cell.id).is_file()
    rest = Diary()
    alone = msgspec.structs.replace(job, devices=1)
    (record,) = pool(watcher=rest).run([alone])
    assert record.status == "ok" and record.method["continued"] is True
    assert min(rest.steps[job.cell.id]) > max(diary.steps[job.cell.id])


def test_processes_end_with_the_worker_that_started_them(
    server: ForkServer, cache: Path, tmp_path: Path
) -> None:
    job = shared("FallsSilent", cache, note=tmp_path)
    worker = server.start(msgspec.msgpack.encode(job))
    worker.poll()
    notes = [tmp_path / f"rank-{rank}" for rank in range(2)]
    assert worker.pid is not None and wait_until(lambda: all(n.exists() for n in notes), 60)
    pids = [int(note.read_text()) for note in notes]
    assert all(alive(pid) for pid in pids)
    os.kill(worker.pid, signal.SIGKILL)
    assert gone(pids)
    worker.close()


@pytest.fixture
def as_in_a_worker() -> Iterator[None]:
    """Environment of a worker; it and the signals are restored afterwards."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    with patch.dict(os.environ, {"PYTHONPATH": str(Path(lra.__file__).parents[1])}):
        yield
    for number, handler in before.items():
        signal.signal(number, handler)


def saving(job: Job, folder: Path) -> Job:
    return msgspec.structs.replace(job, checkpoint=str(folder / "saved.pt"))


@pytest.mark.usefixtures("as_in_a_worker")
def test_a_training_that_loses_a_process_each_time_is_given_up_and_keeps_its_checkpoint(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torchrun, "TRIES", 2)
    monkeypatch.setattr(torchrun, "oom_kills", lambda: 5)
    job = shared("KilledAgain", cache, note=tmp_path, steps=60, evaluate_every=10)
    told: list[Progress] = []
    with pytest.raises(LraError, match=r"^process 1 of 2 ended with SIGKILL, 2 times of 2; "):
        torchrun.run(saving(job, tmp_path), told.append)
    # The first start reached a validation, the second went on to the next.
    assert torch.load(tmp_path / "saved.pt")["step"] == 20
    validated = [one.step for one in told if one.loss is not None]
    assert validated == [10, 20]


@pytest.mark.usefixtures("as_in_a_worker")
def test_a_training_that_loses_processes_for_memory_is_out_of_it(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[int] = []

    def launch(devices: int, folder: Path) -> str:
        started.append(devices)
        return "process 1 of 2 ended with SIGKILL"

    kills = iter([5, 7])
    monkeypatch.setattr(torchrun, "oom_kills", lambda: next(kills))
    monkeypatch.setattr(torchrun, "_launch", launch)
    with pytest.raises(MemoryError, match=r"^process 1 of 2 ended with SIGKILL"):
        torchrun.run(shared("Toy", cache), lambda progress: None)
    assert started == [2] * torchrun.TRIES


@pytest.mark.usefixtures("as_in_a_worker")
def test_a_process_that_falls_silent_is_not_waited_for_for_ever(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torchrun, "TRIES", 1)
    job = shared("FallsSilent", cache, note=tmp_path, patience=8.0, evaluate_every=10)
    with pytest.raises(LraError, match=r"^one of 2 processes fell silent"):
        torchrun.run(saving(job, tmp_path), lambda progress: None)
    pids = [int((tmp_path / f"rank-{rank}").read_text()) for rank in range(2)]
    assert gone(pids)
    assert torch.load(tmp_path / "saved.pt")["step"] == 10


def failure(code: int, at: int) -> ProcessFailure:
    found = ProcessFailure(local_rank=0, pid=1, exitcode=code, error_file="")
    found.timestamp = at
    return found


@pytest.mark.parametrize(
    ("failures", "words"),
    [
        ({0: (LOST, 100), 1: (-9, 100)}, "process 1 of 3 ended with SIGKILL"),
        ({0: (-15, 101), 2: (-11, 100)}, "process 2 of 3 ended with SIGSEGV"),
        ({0: (7, 100), 1: (LOST, 100)}, "process 0 of 3 ended with exit code 7"),
        ({0: (LOST, 100), 1: (-40, 100)}, "process 1 of 3 ended with signal 40"),
        # Killed by torchrun, since it did not end when told to.
        ({0: (LOST, 100), 1: (-9, 130)}, "one of 3 processes fell silent"),
        ({0: (LOST, 100), 1: (-15, 100)}, "one of 3 processes fell silent"),
    ],
)
def test_the_process_is_named_that_the_others_followed(
    failures: dict[int, tuple[int, int]], words: str
) -> None:
    found = {rank: failure(*ended) for rank, ended in failures.items()}
    assert torchrun._describe_failures(found, 3) == words


@pytest.mark.parametrize(("folder", "place"), [("/short", "/short"), ("/" + "x" * 88, "/tmp")])
def test_the_address_of_a_socket_is_never_too_long(
    monkeypatch: pytest.MonkeyPatch, folder: str, place: str
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", folder)
    assert torchrun._socket_folder() == place
