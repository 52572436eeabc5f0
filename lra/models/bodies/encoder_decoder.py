"""The encoder-decoder: a decoder whose every layer reads what an encoder made of another sequence.

B sequences, N target positions, M source positions, D model width
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast

import torch
from torch import Tensor

from attention_impls.contract import Context
from lra.core.errors import UnsupportedError, UsageError
from lra.models.block import Block, BlockState, Memory
from lra.models.bodies.decoder import Decoder
from lra.models.bodies.encoder import Encoder
from lra.models.body import Body, Carried, Stream


class EncoderDecoder(Body):
    """Two stacks (Vaswani et al., 2017); keys and values of the cross layers are the encoder's
    output, normed once where its form has a final norm.

    Raises `UnsupportedError` for a mechanism that cannot fill its slot.
    """

    def __init__(self, encoder: Encoder, decoder: Decoder) -> None:
        super().__init__()
        self.encoder = encoder
        self.decoder = decoder
        for block in cast(Iterable[Block], encoder.blocks):
            if not block.mechanism.card.capabilities.bidirectional:
                raise UnsupportedError(
                    f"{block.mechanism.name} is causal only, and an encoder reads both ways; "
                    "choose another mechanism for the slot encoder"
                )
        for block in cast(Iterable[Block], decoder.blocks):
            _refuse_cross(block)

    def forward(
        self,
        stream: Stream,
        context: Context,
        *,
        states: Sequence[Any] | None = None,
        memory: Memory | None = None,
    ) -> Carried:
        """Return (B, N, D) of the target, and the states after it where some were given.

        Raises `UsageError` without a memory.
        """
        if memory is None:
            raise UsageError("an encoder-decoder has nothing to read; give the encoder's output")
        carried: Carried = self.decoder(stream, context, states=states, memory=memory)
        return carried

    def init_states(
        self,
        batch: int,
        *,
        length: int,
        device: torch.device,
        dtype: torch.dtype,
        memory: Memory | None = None,
    ) -> list[BlockState]:
        """Return states of the decoder's layers before the first position. With a memory they hold
        what they need of it; without one it is to be given, and read, at each call."""
        return self.decoder.init_states(
            batch, length=length, device=device, dtype=dtype, memory=memory
        )

    def select_states(self, states: Sequence[Any], index_B: Tensor) -> list[BlockState]:
        """Return the decoder's states of these rows, in this order."""
        return self.decoder.select_states(states, index_B)


def _refuse_cross(block: Block) -> None:
    """Raise `UnsupportedError` for a block without a mechanism that reads another sequence, all of
    it."""
    if block.cross is None:
        raise UnsupportedError("a decoder's block reads no memory; give it a cross mechanism")
    can = block.cross.card.capabilities
    if not (can.cross and can.bidirectional):
        raise UnsupportedError(
            f"{block.cross.name} cannot attend to another sequence; choose another mechanism for "
            "the slot cross"
        )
