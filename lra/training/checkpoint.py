"""Checkpoints: where a training stands, on disk, so that a killed one ends in the same numbers."""

from __future__ import annotations

import os
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import torch
from torch import Tensor, nn

from lra.core.errors import LraError
from lra.core.records import CurvePoint
from lra.training.objective import Tally
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
class Standing:
    """Where a training stands between two steps.

    The order of rows is a function of the seed and the step, so the step is its position.
    """

    loss_sum: Tensor
    """Of the steps since the last validation; float64, on the device."""
    step: int = 0
    """Optimiser steps done."""
    seconds: float = 0.0
    curve: list[CurvePoint] = field(default_factory=list)
    best: Best | None = None
    tally: Tally | None = None
    """Of the evaluation that was interrupted: of validation at this step, or of the test after the
    last one was validated."""


@dataclass(frozen=True)
class Generators:
    """The states of the random generators of every rank, in their order."""

    cpu: list[Tensor]
    cuda: list[Tensor]
    """Empty where the model is on no GPU."""


def save(
    path: Path,
    run: str,
    standing: Standing,
    model: nn.Module,
    optimiser: torch.optim.Optimizer,
    generators: Generators,
) -> None:
    """Write everything a training needs to go on; a reader sees the old file or the new one.

    `run` identifies the training; `load` refuses a file of another.
    """
    content = {
        "run": run,
        "model": model.state_dict(),
        "optimiser": optimiser.state_dict(),
        "step": standing.step,
        "seconds": standing.seconds,
        "loss_sum": standing.loss_sum,
        "curve": [msgspec.to_builtins(point) for point in standing.curve],
        "best": None if standing.best is None else vars(standing.best),
        "tally": None if standing.tally is None else vars(standing.tally),
        "generators": vars(generators),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    # Machines of a cluster share the folder, and processes on two of them may have one number.
    temporary = path.with_name(f"{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        with temporary.open("wb") as stream:
            torch.save(content, stream)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    _sync_folder(path.parent)


def load(
    path: Path,
    run: str,
    model: nn.Module,
    optimiser: torch.optim.Optimizer,
    device: torch.device,
    ranks: Ranks = ALONE,
) -> Standing | None:
    """Put model, optimiser and generators where the checkpoint left them; None without a file.

    It may be of another number of ranks: those that it does not know keep their generators, and
    sums that were everybody's are now the first one's. Raises `LraError` for a file that cannot be
    read or belongs to another training.
    """
    if not path.is_file():
        return None
    try:
        content: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
        found = content["run"]
    except Exception as error:
        reason = str(error).partition("\n")[0]
        raise LraError(f"cannot read checkpoint '{path.name}' ({reason}); delete it") from error
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
    return Standing(
        step=content["step"],
        seconds=content["seconds"],
        loss_sum=loss_sum if ranks.index == 0 else torch.zeros_like(loss_sum),
        curve=[msgspec.convert(point, CurvePoint) for point in content["curve"]],
        best=None if content["best"] is None else Best(**content["best"]),
        tally=None if content["tally"] is None else Tally(**content["tally"]),
    )


def _sync_folder(folder: Path) -> None:
    """Make a rename last through a power loss."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
