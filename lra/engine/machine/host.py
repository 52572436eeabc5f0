"""The class of this machine and its facts: never torch, never a host name, a user or a path."""

from __future__ import annotations

import math
import os
import platform
import sys
from pathlib import Path
from typing import Any

from lra.core.cells import Device
from lra.core.errors import UsageError
from lra.core.protocol import Machine
from lra.engine.machine.gpus import gpus as gpus
from lra.engine.machine.provenance import command_output, library_version

_CGROUPS = Path("/sys/fs/cgroup")
_OWN_CGROUP = Path("/proc/self/cgroup")
"""Root of the machine's cgroups, and the file that says which of them this process is in."""


def machine(device: Device = "cpu") -> Machine:
    """Return the class of this machine for cells on a device: processor or first visible GPU.

    Raises `UsageError` for cuda where no GPU is visible.
    """
    if device == "cpu":
        return Machine(processor=processor(), cores=cores_allowed())
    cards = gpus()
    if not cards:
        raise UsageError(
            "--device cuda: no GPU is visible here; leave it out, or see: python -m lra doctor"
        )
    driver = cards[0]["driver"]
    return Machine(
        processor=cards[0]["name"],
        cores=cores_allowed(),
        driver=driver and driver.partition(".")[0],
    )


def default_device() -> Device:
    """Return cuda where a GPU is visible and torch is a build that can use it."""
    return "cuda" if gpus() and "+cpu" not in library_version("torch") else "cpu"


def machine_facts() -> dict[str, Any]:
    """Return a record's facts about the machine."""
    return {
        "system": platform.system(),
        "processor": processor(),
        "cores": os.cpu_count(),
        "cores_allowed": cores_allowed(),
        "memory_bytes": memory_bytes(),
        "gpus": gpus(),
    }


def processor() -> str:
    """Return the processor's model name; the architecture where the system does not tell."""
    if sys.platform == "darwin":
        name = command_output("sysctl", "-n", "machdep.cpu.brand_string")
    else:
        name = next(
            (
                line.partition(":")[2].strip()
                for line in _lines(Path("/proc/cpuinfo"))
                if line.startswith("model name")
            ),
            None,
        )
    return name or platform.machine() or "unknown"


def cores_allowed() -> int:
    """Return the number of cores that this process may use, by affinity and by the cgroup's
    quota."""
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    for folder in _cgroups("cpu"):
        quota, period = "max", "100000"
        if (folder / "cpu.max").is_file():
            quota, _, period = _first(folder / "cpu.max").partition(" ")
        elif (folder / "cpu.cfs_quota_us").is_file():
            quota, period = (
                _first(folder / "cpu.cfs_quota_us"),
                _first(folder / "cpu.cfs_period_us"),
            )
        if quota.isdigit() and period.isdigit() and int(quota) > 0:
            cores = min(cores, math.ceil(int(quota) / int(period)))
    return max(1, cores)


def memory_bytes() -> int | None:
    """Return the memory that this process may use: the machine's, or the cgroup's limit if
    lower."""
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return None
    for folder in _cgroups("memory"):
        for name in ("memory.max", "memory.limit_in_bytes"):
            limit = _first(folder / name)
            if limit.isdigit():
                total = min(total, int(limit))
    return total


def oom_kills() -> int:
    """Return the number of processes that the kernel has killed for memory, in this cgroup or on
    the machine.

    A worker that ends with SIGKILL while this rises ran out of memory.
    """
    for folder in _cgroups("memory"):
        for name in ("memory.events", "memory.oom_control"):
            count = _field(folder / name, "oom_kill")
            if count is not None:
                return count
    return _field(Path("/proc/vmstat"), "oom_kill") or 0


def cache_folder() -> Path:
    """Return the folder of prepared data and descriptions: $LRA_CACHE or the system's place."""
    folder = os.environ.get("LRA_CACHE")
    if folder:
        return Path(folder).expanduser().resolve()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "lra"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lra"


def _cgroups(controller: str) -> list[Path]:
    """Folders of this process's cgroup for a controller and of those around it, innermost first,
    since a limit on any of them holds inside; none outside Linux."""
    found = []
    for line in _lines(_OWN_CGROUP):
        _, controllers, place = line.split(":", 2)
        if controllers == "" or controller in controllers.split(","):
            root = _CGROUPS / (controller if controllers else "")
            # A container often sees its own cgroup as the root of the tree.
            inner = Path(place.lstrip("/"))
            inner = inner if (root / inner).is_dir() else Path()
            found += [root / own for own in (inner, *inner.parents)]
    return [folder for folder in found if folder.is_dir()]


def _field(file: Path, name: str) -> int | None:
    for line in _lines(file):
        key, _, value = line.partition(" ")
        if key == name and value.strip().isdigit():
            return int(value)
    return None


def _first(file: Path) -> str:
    return next(iter(_lines(file)), "")


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
