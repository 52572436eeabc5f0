"""Training steps from CUDA graphs: recorded once for each shape of batch, then replayed.

A small model's step waits for the launches of hundreds of kernels, which a replay launches at once.
A graph holds addresses: rows are copied to those of the first batch of their shape, and gradients
are cleared and added up in place. Kernels are those of an eager step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from lra.core.errors import UnsupportedError
from lra.training.batches import Batch

MOST = 64
"""Largest number of recorded shapes; batches of others run kernel by kernel."""
WARM = 2
"""Calls of a shape before it is recorded: in the first, libraries choose kernels and take
memory."""

Work = Callable[[Batch, Tensor], Tensor]
"""Function from a batch and the number of labels in its step, (), to its loss, (); it adds all
gradients."""
Replay = Callable[[], object]
Record = Callable[[Callable[[], Tensor]], tuple[Replay, Tensor]]
"""Function from a call to its replay, and to the tensor that the replay leaves the loss in."""


class _Recorded(NamedTuple):
    batch: Batch
    """Buffers that a replay reads its rows from; `answers` is their number of labels."""
    answers: Tensor
    replay: Replay
    loss: Tensor


class Graphs:
    """Computes loss and gradients of batches on a GPU; the parameters' gradients stay in place.

    `record` is for tests without a GPU. Raises `UnsupportedError` for work that no graph can hold,
    such as waiting for the device in a mechanism.
    """

    def __init__(
        self, work: Work, parameters: Sequence[nn.Parameter], record: Record | None = None
    ) -> None:
        self._work, self._parameters = work, parameters
        self._record = record or _Recorder()
        self._recorded: dict[object, _Recorded] = {}

    def __call__(self, batch: Batch, answers: int) -> Tensor:
        """Return the batch's share in the mean loss, (); its gradients replace earlier ones."""
        shape = _shape(batch)
        count = torch.full((), float(answers), device=batch.tokens_SN.device)
        if shape not in self._recorded:
            if len(self._recorded) == MOST:
                return self._compute(batch, count)
            self._recorded[shape] = self._recording(batch, count)
        one = self._recorded[shape]
        for place, value in zip(_tensors(one.batch), _tensors(batch), strict=True):
            place.copy_(value)
        one.answers.copy_(count)
        one.replay()
        return one.loss

    def _recording(self, batch: Batch, answers: Tensor) -> _Recorded:
        replay, loss = self._record(lambda: self._compute(batch, answers))
        return _Recorded(batch, answers, replay, loss)

    def _compute(self, batch: Batch, answers: Tensor) -> Tensor:
        gradients = [p.grad for p in self._parameters if p.grad is not None]
        if gradients:
            torch._foreach_zero_(gradients)
        return self._work(batch, answers)


class _Recorder:
    """Records calls into CUDA graphs that share their memory: no two run at once."""

    def __init__(self) -> None:
        self._memory = torch.cuda.graph_pool_handle()

    def __call__(self, call: Callable[[], Tensor]) -> tuple[Replay, Tensor]:
        # Not on the stream of all other work, where libraries might still use memory that they keep
        # for it.
        aside = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        current = torch.cuda.current_stream()
        aside.wait_stream(current)
        with torch.cuda.stream(aside):
            for _ in range(WARM):
                call()
        current.wait_stream(aside)
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph, pool=self._memory):
                loss = call()
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:
            why = str(error).partition("\n")[0]
            raise UnsupportedError(
                f"a training step cannot be recorded into a CUDA graph ({why}); "
                "leave execution=graphed out"
            ) from error
        return graph.replay, loss


def _tensors(batch: Batch) -> list[Tensor]:
    return [part for part in _parts(batch) if part is not None]


def _shape(batch: Batch) -> object:
    """Key of all properties in which the graphs of two batches differ."""
    return tuple(None if part is None else tuple(part.shape) for part in _parts(batch))


def _parts(batch: Batch) -> tuple[Tensor | None, ...]:
    return (
        batch.tokens_SN,
        batch.mask_SN,
        batch.labels_L,
        batch.asked_T,
        batch.source_EM,
        batch.source_mask_EM,
    )
