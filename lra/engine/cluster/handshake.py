"""Handshake of a worker that joins: its machine and software, and whether it may run cells of this
run."""

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
from lra.engine.cluster.shared_folder import SharedFolder
from lra.engine.machine import host
from lra.engine.machine.gpus import gpu_ids
from lra.engine.machine.provenance import library_version, provenance

_ROOT = Path(__file__).resolve().parents[3]
_ROOMS = ("lra", "tasks", "attention_impls")
_BOOT = Path("/proc/sys/kernel/random/boot_id")


class Handshake(Frozen, frozen=True, kw_only=True):
    """A worker's machine and its software."""

    software: dict[str, str]
    """Versions by name; a worker's must equal the run's."""
    machines: dict[str, Machine]
    """Class of the machine, by device."""
    host: str
    """Opaque name that tells machines apart."""
    cpus: tuple[int, ...]
    """Processors that it may use."""
    gpus: tuple[str, ...]
    """GPUs that it sees, as named in CUDA_VISIBLE_DEVICES."""
    provenance: Provenance
    problem: str
    """Reason why it cannot use the shared folder; empty where it can."""


def introduce(folder: SharedFolder) -> bytes:
    """Return this process's handshake, for a run that asks a new worker; as MessagePack, since a
    run with other software fails to decode that without harm."""
    devices: list[Device] = ["cpu", "cuda"] if host.gpus() else ["cpu"]
    found = Handshake(
        software=software(),
        machines={device: host.machine(device) for device in devices},
        host=value_hash(_BOOT.read_text() if _BOOT.is_file() else platform.node()),
        cpus=tuple(sorted(os.sched_getaffinity(0))) if hasattr(os, "sched_getaffinity") else (),
        gpus=gpu_ids(),
        provenance=provenance(host.machine_facts()),
        problem=folder.problem(),
    )
    return msgspec.msgpack.encode(found)


def software() -> dict[str, str]:
    """Return versions of the installed software, and a hash of the project's sources."""
    files = sorted(
        file
        for room in _ROOMS
        for kind in ("py", "toml")
        for file in (_ROOT / room).rglob(f"*.{kind}")
    )
    return {
        "lra": __version__,
        "Python": platform.python_version().rpartition(".")[0],
        "torch": library_version("torch"),
        "distributed": version("distributed"),
        "sources": value_hash([(str(file.relative_to(_ROOT)), file_hash(file)) for file in files]),
    }


def why_unfit(theirs: Handshake, ours: dict[str, str], machines: dict[str, Machine]) -> str:
    """Return why a worker may not run cells, after its name; empty where it may.

    `machines` is the class of the other workers; {} where it is the first.
    """
    for name, here in ours.items():
        there = theirs.software.get(name)
        if there != here:
            return (
                f"has {name} {there or 'none'}, the run {here}; "
                "start it from the environment and the sources of the run"
            )
    if theirs.problem:
        return theirs.problem
    if machines and theirs.machines != machines:
        kinds = [
            ", ".join(f"{one.processor}, {one.cores} cores" for one in some.values())
            for some in (theirs.machines, machines)
        ]
        return (
            f"is another class of machine ({kinds[0]}) than the others ({kinds[1]}); "
            "give workers of one class"
        )
    return ""
