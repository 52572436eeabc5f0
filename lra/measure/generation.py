"""Generation by a whole model: a target taken in at once, then one more token from the states of
all layers.

B batch, N tokens of the target taken in, M tokens of the source, as many
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor

from lra.core.cards import TaskCard
from lra.core.cells import EfficiencyCell
from lra.core.records import Metric
from lra.measure.decode import bytes_of, error_metric
from lra.models.block import BlockState
from lra.models.model import Model
from lra.models.output import Output
from lra.models.sequence_model import SequenceModel
from lra.models.stack import Stack
from lra.training.generate.opening import decoding_of


@dataclass(frozen=True)
class GenerationCalls:
    """Timed calls of a model that generates, with the sizes and the error found on the way."""

    prefill: Callable[[], object]
    """Takes in the whole target, and before it the source where there is one."""
    step: Callable[[], Tensor]
    """Takes in one more token, always the same, and returns the most likely next answers, (B,)."""
    own_bytes: int
    """Bytes of all layers' states of the target, which grow with it."""
    cross_bytes: int | None
    """Bytes of all layers' states of the source, made once; None for a decoder without one."""
    error: float
    """Largest difference of that step's logits from the parallel form, over the largest logit."""

    def metrics(self) -> dict[str, Metric]:
        """Return all metrics but the times."""
        sizes = {"state_bytes": self.own_bytes + (self.cross_bytes or 0)}
        if self.cross_bytes is not None:
            sizes |= {"self_state_bytes": self.own_bytes, "cross_state_bytes": self.cross_bytes}
        return {
            **{
                name: Metric(value=float(size), unit="B", better="lower")
                for name, size in sizes.items()
            },
            "decode_error": error_metric(self.error),
        }


@torch.no_grad()
def prepare_generation(
    cell: EfficiencyCell, model: Model | SequenceModel, task: TaskCard, device: torch.device
) -> GenerationCalls:
    """Return the calls to time; tokens are random.

    Raises `UnsupportedError` for a mechanism that does not decode, or that keeps nothing of a
    source.
    """
    decoder = model.body.decoder if isinstance(model, SequenceModel) else cast(Stack, model.body)
    decoding_of(decoder)
    generator = torch.Generator().manual_seed(0)

    def drawn(length: int) -> Tensor:
        shape = (cell.batch, length)
        return torch.randint(1, task.vocabulary, shape, generator=generator).to(device)

    taken = cell.length
    source_BM, tokens_BN = drawn(taken), drawn(taken + 1)
    lasts_B = torch.arange(1, cell.batch + 1, device=device) * taken - 1

    def go_on(
        states: Sequence[Any], tokens: Tensor, first: int, asked_T: Tensor | None = None
    ) -> Output:
        if isinstance(model, SequenceModel):
            return model.decode(tokens, None, asked_T=asked_T, states=states, first=first)
        output: Output = model(tokens, None, asked_T, states=states, first=first)
        return output

    def prefill() -> list[BlockState]:
        with torch.no_grad():
            if isinstance(model, SequenceModel):
                empty = model.init_states(
                    cell.batch, length=taken + 1, memory_BMD=model.encode(source_BM)
                )
            else:
                empty = model.init_states(cell.batch, length=taken + 1)
            # The head answers for the last token alone.
            return list(go_on(empty, tokens_BN[:, :taken], 0, lasts_B).states or ())

    states = prefill()

    def step() -> Tensor:
        with torch.no_grad():
            return go_on(states, tokens_BN[:, taken:], taken).logits_LC.argmax(dim=-1)[:, 0]

    given = (source_BM, tokens_BN) if isinstance(model, SequenceModel) else (tokens_BN,)
    wanted = model(*given).logits_LC[:, taken:].float()
    found = go_on(states, tokens_BN[:, taken:], taken).logits_LC.float()
    scale = wanted.abs().amax().clamp(min=torch.finfo(torch.float32).tiny)
    reads = isinstance(model, SequenceModel)
    return GenerationCalls(
        prefill=prefill,
        step=step,
        own_bytes=bytes_of([state.own for state in states]),
        cross_bytes=bytes_of([state.cross for state in states]) if reads else None,
        error=float((found - wanted).abs().amax() / scale),
    )
