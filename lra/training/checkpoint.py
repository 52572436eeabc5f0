"""Checkpoints: the state of a training on disk, so that a killed training ends in the same
numbers."""

from __future__ import annotations

import os
import uuid
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import torch
from torch import Tensor, nn

from lra.core.errors import LraError, system_reason
from lra.core.hashing import checksum
from lra.core.records import CurvePoint
from lra.training.evaluation import Tally
from lra.training.ranks import ALONE, Ranks


@dataclass(frozen=True)
class Best:
    """The weights that validated best so far."""

    step: int
    accuracy: float
    loss: float
    weights: dict[str, Tensor]
    """The model's state dict, on the CPU."""


@dataclass
class TrainingState:
    """State of a training between two steps.

    The order of rows is a function of the seed and the step, so the step is its position.
    """

    loss_sum: Tensor
    """Sum of the loss over the steps since the last validation; float64, on the device."""
    step: int = 0
    """Number of finished optimiser steps."""
    seconds: float = 0.0
    curve: list[CurvePoint] = field(default_factory=list)
    best: Best | None = None
    tally: Tally | None = None
    """Tally of the interrupted evaluation: of validation at this step, or of the test after the
    last one was validated."""


@dataclass(frozen=True)
class Generators:
    """States of the random generators of every rank, in their order."""

    cpu: list[Tensor]
    cuda: list[Tensor]
    """States on the GPU; empty where the model is on none."""


def save(
    path: Path,
    run: str,
    state: TrainingState,
    model: nn.Module,
    optimiser: torch.optim.Optimizer,
    generators: Generators,
) -> None:
    """Write all that a training needs to go on; a reader sees the old file or the new one.

    `run` identifies the training; `load` refuses a file of another. Raises `LraError` where writing
    fails.
    """
    content = {
        "run": run,
        "sealed": True,
        "model": model.state_dict(),
        "optimiser": optimiser.state_dict(),
        "step": state.step,
        "seconds": state.seconds,
        "loss_sum": state.loss_sum,
        "curve": [msgspec.to_builtins(point) for point in state.curve],
        "best": None if state.best is None else vars(state.best),
        "tally": None if state.tally is None else vars(state.tally),
        "generators": vars(generators),
    }
    # Machines of a cluster share the folder, and processes on two of them may have the same id.
    temporary = path.with_name(f"{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        _write(path, temporary, content)
    except (OSError, RuntimeError) as error:
        # For a full disk torch raises an error of its own, about a position.
        cause = error if isinstance(error, OSError) else error.__context__
        if not isinstance(cause, OSError):
            raise
        raise LraError(
            f"cannot write checkpoint '{path.name}': {system_reason(cause)}; make room or choose "
            "another --store, then run again with --rerun failed"
        ) from error


def _write(path: Path, temporary: Path, content: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with temporary.open("wb") as stream:
            torch.save(content, stream)
            stream.flush()
            stream.write(_seal(checksum(temporary)))
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
    _sync_folder(path.parent)


def load(
    path: Path,
    run: str,
    model: nn.Module,
    optimiser: torch.optim.Optimizer,
    device: torch.device,
    ranks: Ranks = ALONE,
) -> TrainingState | None:
    """Restore model, optimiser and generators from the checkpoint; None without a file.

    It may be of another number of ranks: new ones keep their generators, and the sums of all ranks
    are now the first one's. Raises `LraError` for a file that is damaged or belongs to another
    training. Nothing in it can run code.
    """
    if not path.is_file():
        return None
    try:
        is_sealed = _is_sealed(path)
        content: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
        if content.get("sealed") and not is_sealed:
            raise _ChangedError("it does not hold what was written")
        found = content["run"]
    except Exception as error:
        # torch's own message is about its settings, and proposes to run any code in the file.
        why = "it is cut off, damaged or none of ours"
        if isinstance(error, (OSError, _ChangedError)):
            why = system_reason(error) if isinstance(error, OSError) else str(error)
        raise LraError(
            f"cannot read checkpoint '{path.name}' ({why}); delete it to train anew"
        ) from error
    if found != run:
        raise LraError(
            f"checkpoint '{path.name}' belongs to another training; delete it or name another file"
        )
    model.load_state_dict(content["model"])
    optimiser.load_state_dict(content["optimiser"])
    generators = Generators(**content["generators"])
    if ranks.index < len(generators.cpu):
        torch.set_rng_state(generators.cpu[ranks.index])
    if device.type == "cuda" and ranks.index < len(generators.cuda):
        torch.cuda.set_rng_state(generators.cuda[ranks.index], device)
    loss_sum = content["loss_sum"].to(device)
    return TrainingState(
        step=content["step"],
        seconds=content["seconds"],
        loss_sum=loss_sum if ranks.index == 0 else torch.zeros_like(loss_sum),
        curve=[msgspec.convert(point, CurvePoint) for point in content["curve"]],
        best=None if content["best"] is None else Best(**content["best"]),
        tally=None if content["tally"] is None else Tally(**content["tally"]),
    )


class _ChangedError(Exception):
    """A file differs from what was written."""


def _seal(crc: int) -> bytes:
    """Return the bytes after torch's archive: torch checks no checksum, and ignores them."""
    return b"lra-crc32:%08x" % crc


def _is_sealed(path: Path) -> bool:
    """Return whether a file ends in a seal; raises `_ChangedError` for another checksum than its
    seal's."""
    end = len(_seal(0))
    size = max(path.stat().st_size - end, 0)
    with path.open("rb") as stream:
        stream.seek(size)
        seal = stream.read()
    if not seal.startswith(_seal(0)[:-8]):
        return False
    if seal != _seal(checksum(path, size)):
        raise _ChangedError("it does not hold what was written")
    return True


def _sync_folder(folder: Path) -> None:
    """Make a rename last through a power loss."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
