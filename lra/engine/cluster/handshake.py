"""What a worker says of itself when it joins, and whether it may run cells of this run."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from pathlib import Path

import msgspec

from lra.core.cells import Device
from lra.core.hashing import file_hash, value_hash
from lra.core.protocol import Frozen, Machine
from lra.core.records import Provenance
from lra.core.version import __version__
from lra.engine.cluster.messages import pack
from lra.engine.cluster.shared_folder import Shared
from lra.engine.machine import host
from lra.engine.machine.gpus import gpu_ids
from lra.engine.machine.provenance import library_version, provenance

_ROOT = Path(__file__).resolve().parents[3]
_ROOMS = ("lra", "tasks", "attention_impls")
_BOOT = Path("/proc/sys/kernel/random/boot_id")


class Build(Frozen, frozen=True, kw_only=True):
    """What has to be the same here and at every worker."""

    version: str
    code: str
    """Hash of the project's sources."""
    torch: str
    python: str
    """Without its last number."""
    distributed: str


class Greeting(Frozen, frozen=True, kw_only=True):
    """A worker's machine and what it has installed."""

    build: Build
    machines: dict[str, Machine]
    """Its class, by device."""
    host: str
    """Tells machines apart; means nothing else."""
    cpus: tuple[int, ...]
    """The processors that it may use."""
    gpus: tuple[str, ...]
    """The GPUs that it sees, as CUDA_VISIBLE_DEVICES names them."""
    provenance: Provenance
    problem: str
    """Why it cannot use the shared folder; empty where it can."""


def greet(shared: bytes) -> bytes:
    """Return this process's `Greeting`, packed; what a worker runs first."""
    folder = msgspec.msgpack.decode(shared, type=Shared)
    devices: list[Device] = ["cpu", "cuda"] if host.gpus() else ["cpu"]
    able = hasattr(os, "sched_getaffinity")
    return pack(
        Greeting(
            build=build(),
            machines={device: host.machine(device) for device in devices},
            host=value_hash(_BOOT.read_text() if _BOOT.is_file() else platform.node()),
            cpus=tuple(sorted(os.sched_getaffinity(0))) if able else (),
            gpus=gpu_ids(),
            provenance=provenance(host.machine_facts()),
            problem=folder.problem(),
        )
    )


def build() -> Build:
    """Return what is installed here."""
    files = [
        file
        for room in _ROOMS
        for kind in ("py", "toml")
        for file in sorted((_ROOT / room).rglob(f"*.{kind}"))
    ]
    return Build(
        version=__version__,
        code=value_hash([(str(file.relative_to(_ROOT)), file_hash(file)) for file in files]),
        torch=library_version("torch"),
        python=platform.python_version().rpartition(".")[0],
        distributed=version("distributed"),
    )


def unfit(theirs: Greeting, ours: Build, machines: dict[str, Machine]) -> str:
    """Return why a worker may not run cells, in words that follow its name; empty where it may.

    `machines` is the class of the other workers; {} where it is the first.
    """
    told = {
        "version": "version {} of lra",
        "torch": "torch {}",
        "python": "Python {}",
        "distributed": "distributed {}",
    }
    for field, words in told.items():
        here, there = getattr(ours, field), getattr(theirs.build, field)
        if here != there:
            return (
                f"has {words.format(there or 'none')}, the run {here}; "
                "start it from the environment of the run"
            )
    if theirs.build.code != ours.code:
        return "has other sources of lra than the run; start it from the same clone or package"
    if theirs.problem:
        return theirs.problem
    if machines and theirs.machines != machines:
        return (
            f"is another class of machine ({_words(theirs.machines)}) than the others "
            f"({_words(machines)}); give workers of one class"
        )
    return ""


def _words(machines: dict[str, Machine]) -> str:
    return ", ".join(f"{one.processor}, {one.cores} cores" for one in machines.values())
