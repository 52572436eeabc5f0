"""Check that this machine has the devices that a training shares. Never imports torch."""

from __future__ import annotations

from lra.core.cells import Device
from lra.core.errors import UsageError
from lra.core.protocol import Machine
from lra.engine.machine.host import gpus


def refuse_devices(devices: int, device: Device, machine: Machine, threads: int) -> None:
    """Raise `UsageError` for more GPUs than are visible, or more threads than there are cores."""
    if devices == 1:
        return
    if device == "cuda":
        found = len(gpus())
        if devices > found:
            raise UsageError(
                f"--devices {devices}: GPUs visible here: {found}; ask for no more, or see: "
                "python -m lra doctor"
            )
    elif devices * threads > machine.cores:
        each = f" of {threads} threads" if threads > 1 else ""
        raise UsageError(
            f"--devices {devices}: as many processes{each} need {devices * threads} cores, and "
            f"{machine.cores} may be used here; ask for {max(1, machine.cores // threads)}"
        )
