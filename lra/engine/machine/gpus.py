"""GPUs visible to CUDA here, by the driver's own library: never torch."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

UNKNOWN = "unknown GPU"


def gpus() -> list[dict[str, Any]]:
    """Return name, memory and driver of each visible GPU, or slice of one; None where the driver
    does not tell. Empty where there is none.

    In the order of the bus, as for processes that compute: see
    `lra.engine.process.launch.environment`.
    """
    with _driver() as nvml:
        if nvml is None:
            return []
        version = nvml.ask("nvmlSystemGetDriverVersion")
        return [
            {"name": nvml.name(one), "memory_bytes": nvml.memory(one), "driver": version}
            for one in nvml.visible()
        ]


def gpu_ids() -> tuple[str, ...]:
    """Return each visible GPU, or slice of one, as CUDA_VISIBLE_DEVICES names it whatever others
    are visible: `GPU-...`, `MIG-...`. One without an identifier by its driver is left out."""
    with _driver() as nvml:
        if nvml is None:
            return ()
        return tuple(id for one in nvml.visible() if (id := nvml.ask("nvmlDeviceGetUUID", one)))


@contextmanager
def _driver() -> Iterator[_Driver | None]:
    """NVML while the context lasts; None where there is none."""
    try:
        import pynvml

        pynvml.nvmlInit()
    except ImportError:
        yield None
        return
    except pynvml.NVMLError:
        yield None
        return
    try:
        yield _Driver(pynvml)
    finally:
        pynvml.nvmlShutdown()


class _Driver:
    """NVML, with None in place of errors where a board or a driver does not support a query."""

    def __init__(self, library: Any) -> None:
        self._library = library

    def ask(self, question: str, *about: Any) -> Any:
        """Return the answer to a query; None where there is none."""
        try:
            return getattr(self._library, question)(*about)
        except self._library.NVMLError:
            return None

    def visible(self) -> list[Any]:
        """Handles of the devices in CUDA_VISIBLE_DEVICES, as CUDA reads it; NVML itself ignores
        it."""
        count = self.ask("nvmlDeviceGetCount") or 0
        found = [self.ask("nvmlDeviceGetHandleByIndex", index) for index in range(count)]
        # A board without permission has no handle, and no index in CUDA either.
        boards = [board for board in found if board is not None]
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        if visible is None:
            return [self._used(board) for board in boards]
        chosen = []
        for part in map(str.strip, visible.split(",")):
            one = self._chosen(part, boards)
            if one is None:
                # CUDA stops at the first entry that names nothing.
                break
            chosen.append(self._used(one))
        return chosen

    def name(self, device: Any) -> str:
        """Name of a board; for a slice with its size, since it is another kind of machine."""
        if not self.ask("nvmlDeviceIsMigDeviceHandle", device):
            return self.ask("nvmlDeviceGetName", device) or UNKNOWN
        board = self.ask("nvmlDeviceGetDeviceHandleFromMigDeviceHandle", device)
        name = self.ask("nvmlDeviceGetName", board) or UNKNOWN
        size = self.ask("nvmlDeviceGetAttributes", device)
        if size is None:
            return f"{name} MIG"
        gib = math.ceil(size.memorySizeMB / 1024)
        return f"{name} MIG {size.gpuInstanceSliceCount}g.{gib}gb"

    def memory(self, device: Any) -> int | None:
        """Memory of a device in bytes."""
        found = self.ask("nvmlDeviceGetMemoryInfo", device)
        return None if found is None else int(found.total)

    def _chosen(self, part: str, boards: list[Any]) -> Any:
        """Board of an index, or device of a unique prefix of its name such as GPU-... or MIG-..."""
        if part.isdigit():
            return boards[int(part)] if int(part) < len(boards) else None
        if not part.startswith(("GPU-", "MIG-")):
            return None
        slices = [one for board in boards for one in self._slices(board)]
        named = [
            one
            for one in (*boards, *slices)
            if (self.ask("nvmlDeviceGetUUID", one) or "").startswith(part)
        ]
        return named[0] if len(named) == 1 else None

    def _used(self, device: Any) -> Any:
        """First slice of a board in MIG mode, the only one that CUDA uses; any other device
        itself."""
        return next(iter(self._slices(device)), device)

    def _slices(self, board: Any) -> list[Any]:
        """Slices of a board in MIG mode; none for other boards, nor for a slice."""
        modes = self.ask("nvmlDeviceGetMigMode", board)
        if not modes or not modes[0]:
            return []
        count = self.ask("nvmlDeviceGetMaxMigDeviceCount", board) or 0
        found = [self.ask("nvmlDeviceGetMigDeviceHandleByIndex", board, i) for i in range(count)]
        return [one for one in found if one is not None]
