"""The processes that train one model together, each on its share of every batch.

A single process is the plain case, unaffected by this file. Several are joined by
`torch.distributed` (Li et al. 2020, PyTorch Distributed, arXiv:2006.15704): each holds the whole
model, their gradients are summed over the whole batch, and decisions by a clock or a signal are
made for all at once, so that none waits for another in vain.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import timedelta

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from lra.core.errors import LraError
from lra.training.batches import Indices

_LOST = ("gloo", "Application timeout caused pair closure")
"""Parts of gloo's messages, as it has no class for its errors: the path of its sources, and the
full message of a process whose other thread gave up."""


class Ranks:
    """A single process."""

    index = 0
    """Number of this process; the first alone writes and reports."""
    count = 1

    def join(self, model: nn.Module) -> nn.Module:
        """Return the module to call in training; it sums gradients over all processes."""
        return model

    def apart(self, model: nn.Module) -> AbstractContextManager[None]:
        """Return a context in which a joined model keeps its gradients to itself, for the
        micro-batches before the last."""
        return nullcontext()

    def share(self, rows: Indices, lengths: Indices) -> Indices:
        """Return the rows of a batch that this process computes; `lengths` are theirs."""
        return rows

    def agree(self, *wishes: bool) -> tuple[bool, ...]:
        """Return for each wish whether any process has it."""
        return wishes

    def total(self, value: Tensor) -> Tensor:
        """Return the sum over all processes, the same in each; `value` itself is unchanged."""
        return value

    def gather(self, value: Tensor) -> list[Tensor]:
        """Return every process's tensor of one shape, on the CPU, in the order of their numbers."""
        return [value]

    def align(self, model: nn.Module) -> None:
        """Give every process the first one's buffers, which mechanisms may have drawn anew."""


ALONE = Ranks()


class Joined(Ranks):
    """A process among several, within `torch.distributed`'s default group.

    The group needs a backend for CPU tensors (gloo) and, for models on GPUs, one for these.
    """

    def __init__(self) -> None:
        self.index, self.count = dist.get_rank(), dist.get_world_size()

    def join(self, model: nn.Module) -> nn.Module:
        """Return the model within DistributedDataParallel. It averages gradients: for their sum a
        loss is to be multiplied by `count`."""
        # A mechanism without mixing projects queries that are never read.
        return DistributedDataParallel(model, find_unused_parameters=True)

    def apart(self, model: nn.Module) -> AbstractContextManager[None]:
        """Return DistributedDataParallel's own context."""
        assert isinstance(model, DistributedDataParallel)
        return model.no_sync()

    def share(self, rows: Indices, lengths: Indices) -> Indices:
        """Return every `count`-th row by length, so that all processes compute about as much;
        raises `LraError` where there are fewer rows than processes."""
        if len(rows) < self.count:
            raise LraError(
                f"a batch of {len(rows)} rows is not enough for {self.count} devices; "
                "ask for fewer devices or set training.batch higher"
            )
        return rows[np.argsort(lengths, kind="stable")][self.index :: self.count]

    def agree(self, *wishes: bool) -> tuple[bool, ...]:
        """Return for each wish whether any process has it; each waits for all."""
        asked = torch.tensor(wishes, dtype=torch.uint8)
        dist.all_reduce(asked, dist.ReduceOp.MAX)
        return tuple(map(bool, asked.tolist()))

    def total(self, value: Tensor) -> Tensor:
        """Return the sum over all processes, on the device of `value`."""
        summed = value.detach().clone()
        dist.all_reduce(summed)
        return summed

    def gather(self, value: Tensor) -> list[Tensor]:
        """Return every process's tensor, in the order of their numbers."""
        found = [torch.empty_like(value) for _ in range(self.count)]
        dist.all_gather(found, value)
        return found

    def align(self, model: nn.Module) -> None:
        """Send the first one's buffers to all."""
        for buffer in model.buffers():
            dist.broadcast(buffer, src=0)


@contextmanager
def joined(device: torch.device, patience: timedelta) -> Iterator[Ranks]:
    """Join the processes that torchrun started; called in each of them, with its own device.

    `patience` is the time that one waits for the others before it takes one of them for dead.
    """
    backend = "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"
    dist.init_process_group(backend, timeout=patience)
    yield Joined()
    # Not after an error: it would wait for a process that hangs.
    dist.destroy_process_group()


def is_lost(error: BaseException) -> bool:
    """Return whether an error means that another process is gone or silent."""
    if isinstance(error, dist.DistError):
        return True
    return isinstance(error, RuntimeError) and any(words in str(error) for words in _LOST)
