"""Facts of the machine: limits of containers, GPUs without torch, nothing that names anybody."""

from __future__ import annotations

import getpass
import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lra.engine import host


def test_this_machine_has_a_class_and_facts_without_names() -> None:
    machine = host.machine()
    assert machine.processor and machine.cores >= 1 and machine.driver is None
    facts = host.facts()
    assert facts["cores_allowed"] == machine.cores <= (os.cpu_count() or 1)
    assert facts["memory_bytes"] > 2**20
    text = json.dumps(facts)
    for secret in (os.uname().nodename, str(Path.home()), f'"{getpass.getuser()}"'):
        assert secret not in text


@pytest.fixture
def cgroup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(host, "_cgroups", lambda controller: [tmp_path])
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(64)), raising=False)
    return tmp_path


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({}, 64),
        ({"cpu.max": "max 100000"}, 64),
        ({"cpu.max": "250000 100000"}, 3),
        ({"cpu.max": "50000 100000"}, 1),
        ({"cpu.cfs_quota_us": "-1", "cpu.cfs_period_us": "100000"}, 64),
        ({"cpu.cfs_quota_us": "400000", "cpu.cfs_period_us": "100000"}, 4),
    ],
)
def test_cores_are_limited_by_the_cgroup(cgroup: Path, files: dict[str, str], cores: int) -> None:
    for name, text in files.items():
        (cgroup / name).write_text(text + "\n")
    assert host.cores_allowed() == cores


@pytest.mark.parametrize("name", ["memory.max", "memory.limit_in_bytes"])
def test_memory_is_limited_by_the_cgroup(cgroup: Path, name: str) -> None:
    (cgroup / name).write_text("1048576\n")
    assert host.memory_bytes() == 2**20
    (cgroup / name).write_text("max\n")
    assert (host.memory_bytes() or 0) > 2**20


@pytest.mark.parametrize("name", ["memory.events", "memory.oom_control"])
def test_kills_for_memory_are_counted(cgroup: Path, name: str) -> None:
    (cgroup / name).write_text("low 0\noom 7\noom_kill 3\n")
    assert host.memory_kills() == 3


class FakeNvml(SimpleNamespace):
    class NVMLError(Exception):
        pass

    def __init__(self, cards: int, *, driver_there: bool = True) -> None:
        super().__init__()
        self.cards, self.driver_there, self.open = cards, driver_there, 0

    def nvmlInit(self) -> None:  # noqa: N802
        if not self.driver_there:
            raise self.NVMLError("no library")
        self.open += 1

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.open -= 1

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return self.cards

    def nvmlSystemGetDriverVersion(self) -> str:  # noqa: N802
        return "570.12.3"

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:  # noqa: N802
        return index

    def nvmlDeviceGetName(self, handle: int) -> str:  # noqa: N802
        return f"GPU model {handle}"

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> Any:  # noqa: N802
        return SimpleNamespace(total=2**30)


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> FakeNvml:
    fake = FakeNvml(cards=2)
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return fake


def test_gpus_are_described_and_the_library_is_closed(nvml: FakeNvml) -> None:
    assert [card["name"] for card in host.gpus()] == ["GPU model 0", "GPU model 1"]
    assert host.gpus()[0] == {"name": "GPU model 0", "memory_bytes": 2**30, "driver": "570.12.3"}
    assert nvml.open == 0
    machine = host.machine("cuda")
    assert (machine.processor, machine.driver) == ("GPU model 0", "570")


@pytest.mark.parametrize(
    ("told", "seen"),
    [
        ("1", ["GPU model 1"]),
        ("1,0", ["GPU model 1", "GPU model 0"]),
        ("", []),
        ("-1", []),
        ("0,7,1", ["GPU model 0"]),
    ],
)
def test_hidden_gpus_are_not_described(
    nvml: FakeNvml, monkeypatch: pytest.MonkeyPatch, told: str, seen: list[str]
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", told)
    assert [card["name"] for card in host.gpus()] == seen


def test_without_a_driver_or_the_library_there_is_no_gpu(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml(cards=1, driver_there=False))
    assert host.gpus() == []
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert host.gpus() == []
    assert host.default_device() == "cpu"


@pytest.mark.parametrize(("build", "device"), [("2.13.0+cpu", "cpu"), ("2.13.0", "cuda")])
def test_a_gpu_is_the_default_only_where_torch_can_use_it(
    nvml: FakeNvml, monkeypatch: pytest.MonkeyPatch, build: str, device: str
) -> None:
    monkeypatch.setattr(host, "library", lambda name: build)
    assert host.default_device() == device


def test_the_cache_is_where_the_person_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LRA_CACHE", "/elsewhere")
    assert host.cache_folder() == Path("/elsewhere")
    monkeypatch.delenv("LRA_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    if sys.platform == "linux":
        assert host.cache_folder() == Path("/xdg/lra")
