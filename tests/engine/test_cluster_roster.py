"""Who may run cells, and which worker a cell goes to; no cluster runs here."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from engine_jobs import timing, training

pytest.importorskip("distributed", reason="needs the extra cluster")

from lra.core.protocol import Machine
from lra.core.records import Failure
from lra.engine.cluster import worker
from lra.engine.cluster.handshake import Build, Greeting, build, greet, unfit
from lra.engine.cluster.messages import Ended, Order, pack
from lra.engine.cluster.shared_folder import Shared, shared
from lra.engine.cluster.worker import Station
from lra.engine.cluster.workers import Member, Roster
from lra.engine.jobs import Job, Outcome
from lra.engine.process.exit_status import Ending

OURS = Build(version="1", code="abc", torch="2.13.0", python="3.11", distributed="2026.8.0")


def greeting(**changes: Any) -> Greeting:
    values: dict[str, Any] = {
        "build": OURS,
        "machines": {"cpu": Machine(processor="toy", cores=4)},
        "host": "one",
        "cpus": (0, 1, 2, 3),
        "gpus": (),
        "provenance": {},
        "problem": "",
    }
    return msgspec.convert(values | changes, Greeting)


class Asked:
    """In place of a client: notes what workers are asked."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[Any, ...]]] = []

    def submit(self, what: Any, *arguments: Any, workers: list[str], **_: Any) -> None:
        self.calls.append((workers[0], arguments))


@pytest.fixture
def roster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Roster:
    monkeypatch.setattr("lra.engine.cluster.workers.build", lambda: OURS)
    monkeypatch.setattr("lra.engine.cluster.workers.fire_and_forget", lambda future: None)
    return Roster(Asked(), Shared(str(tmp_path), "token"), "run", pins=True)  # type: ignore[arg-type]


def job(cache: Path, **changes: Any) -> Job:
    one = training("Toy", cache)
    return msgspec.structs.replace(one, cell=msgspec.structs.replace(one.cell, **changes))


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("version", "2", "has version 2 of lra, the run 1; start it from the environment of the"),
        ("torch", "2.12.0", "has torch 2.12.0, the run 2.13.0"),
        ("torch", "", "has torch none, the run 2.13.0"),
        ("python", "3.12", "has Python 3.12, the run 3.11"),
        ("distributed", "2026.1.0", "has distributed 2026.1.0, the run 2026.8.0"),
        ("code", "xyz", "has other sources of lra than the run; start it from the same clone"),
    ],
)
def test_a_worker_of_another_build_may_not_run_cells(field: str, value: str, words: str) -> None:
    assert unfit(greeting(), OURS, {}) == ""
    other = msgspec.structs.replace(OURS, **{field: value})
    assert unfit(greeting(build=other), OURS, {}).startswith(words)


def test_all_workers_are_of_one_class_of_machine() -> None:
    others = {"cpu": Machine(processor="toy", cores=8)}
    assert unfit(greeting(), OURS, others).startswith(
        "is another class of machine (toy, 4 cores) than the others (toy, 8 cores)"
    )


def test_this_process_may_run_cells_of_itself_while_it_sees_the_folder(tmp_path: Path) -> None:
    with shared(tmp_path / "store") as folder:
        own = msgspec.msgpack.decode(greet(pack(folder)), type=Greeting)
        assert unfit(own, build(), own.machines) == ""
        for file in (tmp_path / "store").glob(".cluster-*"):
            file.rename(tmp_path / "elsewhere")
        own = msgspec.msgpack.decode(greet(pack(folder)), type=Greeting)
    told = unfit(own, build(), {})
    assert told.startswith("does not see the store") and str(tmp_path / "store") in told


def test_each_worker_gets_a_gpu_of_its_own_and_one_too_many_is_refused(
    roster: Roster, monkeypatch: pytest.MonkeyPatch
) -> None:
    hubs = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
    for name, value in hubs.items():
        monkeypatch.setenv(name, value)
    sees = greeting(gpus=("GPU-a", "GPU-b"))
    for name in ("w0", "w1", "w2"):
        roster._admit(name, name, sees)
    roster._admit("w3", "w3", greeting(gpus=("GPU-a",), host="two"))
    assert {name: one.gpu for name, one in roster.members.items()} == {
        "w0": "GPU-a", "w1": "GPU-b", "w3": "GPU-a"
    }  # fmt: skip
    assert roster.client.calls == [  # type: ignore[attr-defined]
        (name, ("run", {**hubs, "CUDA_VISIBLE_DEVICES": gpu}))
        for name, gpu in (("w0", "GPU-a"), ("w1", "GPU-b"), ("w3", "GPU-a"))
    ]
    (line,) = roster.news()
    assert line.startswith("worker w2 has no GPU of its own: all 2 that it sees have workers")
    del roster.members["w0"]
    roster._admit("w4", "w4", sees)
    assert roster.members["w4"].gpu == "GPU-a"


def test_a_fork_server_is_made_in_the_environment_of_its_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[tuple[str | None, str | None]] = []

    class Server:
        def __init__(self) -> None:
            names = ("CUDA_VISIBLE_DEVICES", "HF_HUB_OFFLINE")
            seen.append((os.environ.get(names[0]), os.environ.get(names[1])))

        def close(self) -> None:
            pass

    monkeypatch.setattr(worker, "ForkServer", Server)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    place, told = Station(), {"CUDA_VISIBLE_DEVICES": "GPU-b", "HF_HUB_OFFLINE": "1"}
    place.prepare("run", told)
    place.prepare("run", told)
    place.dismiss("another run")
    assert seen == [("GPU-b", "1")]
    # A worker that serves several runs says of itself what it has, to each.
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "0,1"
    assert "HF_HUB_OFFLINE" not in os.environ
    place.dismiss("run")
    place.prepare("next run", {"CUDA_VISIBLE_DEVICES": "GPU-a"})
    assert seen == [("GPU-b", "1"), ("GPU-a", None)]


def test_each_run_has_the_log_of_its_own_orders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("lra", "distributed"):
        monkeypatch.setattr(logging.getLogger(name), "handlers", [])
    files = [tmp_path / "first.log", tmp_path / "second.log"]
    for file in (files[0], files[0], files[1]):
        worker._follow(file)
        worker.logger.info("to %s", file.stem)
    told = [[line.split()[-1] for line in file.read_text().splitlines()] for file in files]
    assert told == [["first", "first"], ["second"]]
    for name in ("lra", "distributed"):
        (log,) = logging.getLogger(name).handlers
        log.close()


def test_an_order_without_its_folder_starts_nothing(tmp_path: Path, cache: Path) -> None:
    order = Order(job=training("Toy", cache), run="r", shared=Shared(str(tmp_path), "t"), grace=1.0)
    ended = Station().carry(order, lambda said: None, lambda: False)
    assert isinstance(ended, Ended) and ended.outcome is None
    assert ended.unfit.startswith("does not see the store")


def test_what_fails_with_the_folder_is_no_row_of_the_cell(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = Outcome(status="error", failure=Failure(type="OSError", message="gone", phase="train"))

    class Ran:
        """A cell that has failed."""

        outcome, stopped, asked_to_stop = failed, False, False
        started_at, seconds = "2026-01-01T00:00:00+00:00", 1.0

        def __init__(self, job: Job, worker: Any, **_: Any) -> None:
            self.worker = worker

        def drain(self) -> None:
            pass

        def ending(self) -> Ending:
            return Ending(failed, 0, "train", None, out_of_memory=False, tail="")

    worker = SimpleNamespace(pid=1, exit_code=0, close=lambda: None)
    server = SimpleNamespace(start=lambda payload: worker, close=lambda: None)
    monkeypatch.setattr(worker, "ForkServer", lambda: server)
    monkeypatch.setattr(worker, "Supervisor", Ran)
    monkeypatch.setattr(worker, "listen", list)
    with shared(tmp_path / "store") as folder:
        order = Order(job=training("Toy", cache), run="r", shared=folder, grace=1.0)
        ended = Station().carry(order, lambda said: None, lambda: False)
        assert ended.outcome == failed and not ended.unfit

        def unmounted(running: list[Any]) -> list[Any]:
            for file in (tmp_path / "store").glob(".cluster-*"):
                file.unlink()
            return running

        monkeypatch.setattr(worker, "listen", unmounted)
        ended = Station().carry(order, lambda said: None, lambda: False)
    assert ended.outcome is None and ended.unfit.startswith("does not see the store")


def test_cells_on_one_machine_take_no_more_threads_than_it_has_cores(
    roster: Roster, cache: Path
) -> None:
    for name in ("w0", "w1", "w2"):
        roster._admit(name, name, greeting())
    roster._admit("other", "other", greeting(host="two"))
    first = put(roster, job(cache, threads=3))
    assert first is not None and first.name == "w0"
    elsewhere = put(roster, job(cache, threads=2))
    assert elsewhere is not None and elsewhere.name == "other"
    beside = put(roster, job(cache, threads=1))
    assert beside is not None and beside.name == "w1"
    assert put(roster, job(cache, threads=8)) is None


def test_workers_on_processors_of_their_own_leave_each_other_all_threads(
    roster: Roster, cache: Path
) -> None:
    half = {"cpu": Machine(processor="toy", cores=2)}
    for name, cpus in (("w0", (0, 1)), ("w1", (2, 3)), ("w2", (0, 1))):
        roster._admit(name, name, greeting(cpus=cpus, machines=half))
    placed = [put(roster, job(cache, threads=2, seed=seed)) for seed in range(3)]
    assert [member and member.name for member in placed] == ["w0", "w1", None]


def test_a_timing_waits_for_a_machine_which_takes_no_more(roster: Roster, cache: Path) -> None:
    for name in ("w0", "w1"):
        roster._admit(name, name, greeting())
    running = put(roster, job(cache, seed=1))
    assert running is not None
    assert put(roster, timing("Toy", cache)) is None
    assert not roster.has_room, "w1 would never be alone"
    assert put(roster, job(cache, seed=2)) is None
    running.job = None
    roster.new_round()
    timed = put(roster, timing("Toy", cache))
    assert timed is not None
    assert put(roster, job(cache, seed=2)) is None


def put(roster: Roster, job: Job) -> Member | None:
    member = roster.place_for(job)
    if member is not None:
        member.job = job
    return member
