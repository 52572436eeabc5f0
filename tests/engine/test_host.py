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

from lra.engine.machine import host
from lra.engine.process.launch import environment


def test_this_machine_has_a_class_and_facts_without_names() -> None:
    machine = host.machine()
    assert machine.processor and machine.cores >= 1 and machine.driver is None
    facts = host.machine_facts()
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
    assert host.oom_kills() == 3


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """All cgroups of a machine; this process is in a step of a Slurm job."""
    own = tmp_path / "own"
    own.write_text("0::/system.slice/job_7/step_0\n")
    monkeypatch.setattr(host, "_CGROUPS", tmp_path)
    monkeypatch.setattr(host, "_OWN_CGROUP", own)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(64)), raising=False)
    (tmp_path / "system.slice/job_7/step_0").mkdir(parents=True)
    return tmp_path


@pytest.mark.parametrize("place", [".", "system.slice", "system.slice/job_7/step_0"])
def test_a_limit_holds_for_the_cgroups_inside(tree: Path, place: str) -> None:
    (tree / "system.slice/job_7/cpu.max").write_text("800000 100000\n")
    (tree / "system.slice/job_7/memory.max").write_text("2097152\n")
    assert (host.cores_allowed(), host.memory_bytes()) == (8, 2**21)
    for own in (".", "system.slice/job_7/step_0"):
        (tree / own / "cpu.max").write_text("max 100000\n")
        (tree / own / "memory.max").write_text("max\n")
    assert (host.cores_allowed(), host.memory_bytes()) == (8, 2**21)
    (tree / place / "cpu.max").write_text("300000 100000\n")
    (tree / place / "memory.max").write_text("1048576\n")
    assert (host.cores_allowed(), host.memory_bytes()) == (3, 2**20), "the least of all"


def test_cgroups_of_a_version_1_machine_lie_below_their_controller(tree: Path) -> None:
    (tree / "own").write_text("4:memory:/job_7/step_0\n3:cpu,cpuacct:/job_7/step_0\n0::/\n")
    for controller in ("cpu", "memory"):
        (tree / controller / "job_7" / "step_0").mkdir(parents=True)
    (tree / "cpu/job_7/cpu.cfs_quota_us").write_text("200000\n")
    (tree / "cpu/job_7/cpu.cfs_period_us").write_text("100000\n")
    (tree / "memory/job_7/memory.limit_in_bytes").write_text("1048576\n")
    assert (host.cores_allowed(), host.memory_bytes()) == (2, 2**20)


def test_a_container_that_does_not_see_its_cgroup_has_the_limits_of_the_root(tree: Path) -> None:
    (tree / "own").write_text("0::/system.slice/box\n")
    (tree / "system.slice/cpu.max").write_text("100000 100000\n")
    (tree / "cpu.max").write_text("300000 100000\n")
    assert host.cores_allowed() == 3, "the slice of that name is one inside it"


def test_kills_are_counted_in_the_innermost_cgroup(tree: Path) -> None:
    for place, kills in ((".", 9), ("system.slice/job_7", 5), ("system.slice/job_7/step_0", 2)):
        (tree / place / "memory.events").write_text(f"oom_kill {kills}\n")
    assert host.oom_kills() == 2


class FakeNvml(SimpleNamespace):
    class NVMLError(Exception):
        pass

    def __init__(self, cards: int, *, driver_there: bool = True) -> None:
        super().__init__()
        self.cards, self.driver_there, self.open = cards, driver_there, 0
        self.cut: set[float] = set()
        self.unsupported: set[tuple[str, int]] = set()

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
        return self._answered("handle", index)

    def nvmlDeviceGetName(self, handle: float) -> str:  # noqa: N802
        return f"GPU model {self._answered('name', int(handle))}"

    def nvmlDeviceGetMemoryInfo(self, handle: float) -> Any:  # noqa: N802
        self._answered("memory", int(handle))
        return SimpleNamespace(total=2**30)

    # The slices of a board in MIG mode have its number plus 0.25 and 0.5.
    def nvmlDeviceGetUUID(self, handle: float) -> str:  # noqa: N802
        return f"MIG-b{handle}" if self.nvmlDeviceIsMigDeviceHandle(handle) else f"GPU-a{handle}0"

    def nvmlDeviceIsMigDeviceHandle(self, handle: float) -> bool:  # noqa: N802
        return handle != int(handle)

    def nvmlDeviceGetMigMode(self, handle: float) -> list[int]:  # noqa: N802
        if self.nvmlDeviceIsMigDeviceHandle(handle):
            raise self.NVMLError("not of a slice")
        return [int(handle in self.cut), 0]

    def nvmlDeviceGetMaxMigDeviceCount(self, handle: int) -> int:  # noqa: N802
        return 7

    def nvmlDeviceGetMigDeviceHandleByIndex(self, handle: int, index: int) -> float:  # noqa: N802
        if index >= 2:
            raise self.NVMLError("not found")
        return handle + (index + 1) / 4

    def nvmlDeviceGetDeviceHandleFromMigDeviceHandle(self, handle: float) -> int:  # noqa: N802
        return int(handle)

    def nvmlDeviceGetAttributes(self, handle: float) -> Any:  # noqa: N802
        return SimpleNamespace(gpuInstanceSliceCount=int(handle % 1 * 4), memorySizeMB=9856)

    def _answered(self, question: str, handle: int) -> int:
        if (question, handle) in self.unsupported:
            raise self.NVMLError("not supported")
        return handle


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
        ("GPU-a10", ["GPU model 1"]),
        ("GPU-a1, GPU-a0", ["GPU model 1", "GPU model 0"]),
        ("GPU-a", []),
        ("GPU-a00,GPU-other,1", ["GPU model 0"]),
    ],
)
def test_hidden_gpus_are_not_described(
    nvml: FakeNvml, monkeypatch: pytest.MonkeyPatch, told: str, seen: list[str]
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", told)
    assert [card["name"] for card in host.gpus()] == seen


@pytest.mark.parametrize(
    ("told", "seen"),
    [
        (None, ["GPU model 0", "GPU model 1 MIG 1g.10gb"]),
        ("1", ["GPU model 1 MIG 1g.10gb"]),
        ("MIG-b1.5", ["GPU model 1 MIG 2g.10gb"]),
        ("MIG-other", []),
    ],
)
def test_a_slice_of_a_gpu_is_no_whole_one(
    nvml: FakeNvml, monkeypatch: pytest.MonkeyPatch, told: str | None, seen: list[str]
) -> None:
    nvml.cut = {1}
    if told is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", told)
    assert [card["name"] for card in host.gpus()] == seen


def test_what_one_board_does_not_tell_hides_no_gpu(nvml: FakeNvml) -> None:
    nvml.unsupported = {("memory", 0), ("name", 1)}
    assert [(card["name"], card["memory_bytes"]) for card in host.gpus()] == [
        ("GPU model 0", None),
        ("unknown GPU", 2**30),
    ]
    assert host.machine("cuda").processor == "GPU model 0"
    # One that this process may not use is none of CUDA's either.
    nvml.unsupported = {("handle", 0)}
    assert [card["name"] for card in host.gpus()] == ["GPU model 1"]


def test_processes_that_compute_count_gpus_as_their_names_do() -> None:
    assert environment()["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"


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
    monkeypatch.setattr(host, "library_version", lambda name: build)
    assert host.default_device() == device


def test_the_cache_is_where_the_person_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LRA_CACHE", "/elsewhere")
    assert host.cache_folder() == Path("/elsewhere")
    # Others may have another current folder.
    monkeypatch.setenv("LRA_CACHE", "elsewhere")
    assert host.cache_folder() == Path.cwd() / "elsewhere"
    monkeypatch.delenv("LRA_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    if sys.platform == "linux":
        assert host.cache_folder() == Path("/xdg/lra")
