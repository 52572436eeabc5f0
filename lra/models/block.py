"""One block: a mechanism, a mechanism that reads a memory where there is one, an MLP; each on a
residual branch.

B sequences, N positions, M positions of a memory, D model width
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attention_impls.contract import Context, Layer
from lra.core.protocol import BlockForm
from lra.models.dropout import Dropout

NORM_EPSILON = 1e-6
"""Epsilon of every norm, as in flax."""
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": partial(F.gelu, approximate="tanh"),
}


class Memory(NamedTuple):
    """Another sequence that blocks read."""

    x_BMD: Tensor | None
    """None where the states of the blocks hold what they read."""
    context: Context
    """Request of the blocks' cross-attention; its keys are the memory's positions, and states hold
    their mask too."""


class BlockState(NamedTuple):
    """Decode state of a block."""

    own: Any
    """State of its mechanism, which grows with the target."""
    cross: Any = None
    """State of its cross mechanism, made of a memory once; None where there is none, or where the
    memory is read at each call."""


def build_norm(form: BlockForm, width: int) -> nn.Module:
    """Return a norm of the form's kind."""
    kind = nn.LayerNorm if form.norm_kind == "layer" else nn.RMSNorm
    return kind(width, eps=NORM_EPSILON)


class Mlp(nn.Module):
    """Linear, activation, dropout if the form has it there, linear, dropout; Xavier weights."""

    def __init__(
        self, width: int, hidden: int, dropout: float, form: BlockForm | None = None
    ) -> None:
        super().__init__()
        form = form or BlockForm()
        self.widen = nn.Linear(width, hidden, bias=form.mlp_biases)
        self.narrow = nn.Linear(hidden, width, bias=form.mlp_biases)
        self.activation = ACTIVATIONS[form.activation]
        self.drops_hidden = form.hidden_dropout
        self.dropout = Dropout(dropout)
        for linear in (self.widen, self.narrow):
            nn.init.xavier_uniform_(linear.weight)
            if form.mlp_biases:
                nn.init.normal_(linear.bias, std=1e-6)

    def forward(self, x_BND: Tensor) -> Tensor:
        """Return (B, N, D), each position from itself alone."""
        hidden = self.activation(self.widen(x_BND))
        if self.drops_hidden:
            hidden = self.dropout(hidden)
        y_BND: Tensor = self.dropout(self.narrow(hidden))
        return y_BND


class Block(nn.Module):
    """x + dropout(mechanism(norm(x))), then x + MLP(norm(x)); between them, with a `cross`
    mechanism, x + dropout(cross(norm(x), memory)). In the form `post` the norm comes after each
    addition instead.

    The mechanism zeroes padding on its way in and out; the MLP and the residual stream leave any
    values there, which no real position ever sees.
    """

    def __init__(
        self,
        width: int,
        *,
        mechanism: Layer,
        mlp: Mlp,
        dropout: float,
        form: BlockForm | None = None,
        cross: Layer | None = None,
    ) -> None:
        super().__init__()
        form = form or BlockForm()
        self.norms_first = form.norm == "pre"
        self.mechanism_norm = build_norm(form, width)
        self.mechanism = mechanism
        self.dropout = Dropout(dropout)
        self.cross_norm = None if cross is None else build_norm(form, width)
        self.cross = cross
        self.mlp_norm = build_norm(form, width)
        self.mlp = mlp

    def forward(self, x_BND: Tensor, context: Context, memory: Memory | None = None) -> Tensor:
        """Return (B, N, D)."""
        return self.step(x_BND, context, None, memory)[0]

    def step(
        self,
        x_BND: Tensor,
        context: Context,
        state: BlockState | None,
        memory: Memory | None = None,
    ) -> tuple[Tensor, BlockState]:
        """Return (B, N, D) for positions that go on from a state, and the state after them."""
        own, cross = state or BlockState(None)
        mixed_BND, own = self.mechanism(
            self._before(self.mechanism_norm, x_BND), context, state=own
        )
        x_BND = self._after(self.mechanism_norm, x_BND + self.dropout(mixed_BND))
        if self.cross is not None and self.cross_norm is not None:
            assert memory is not None, "a block with a cross mechanism has a memory to read"
            read_BND, cross = self.cross(
                self._before(self.cross_norm, x_BND),
                memory.context,
                source_BMD=memory.x_BMD,
                state=cross,
            )
            x_BND = self._after(self.cross_norm, x_BND + self.dropout(read_BND))
        y_BND = self._after(self.mlp_norm, x_BND + self.mlp(self._before(self.mlp_norm, x_BND)))
        return y_BND, BlockState(own, cross)

    def init_state(
        self,
        batch: int,
        *,
        length: int,
        device: torch.device,
        dtype: torch.dtype,
        memory: Memory | None = None,
    ) -> BlockState:
        """Return the state before the first of up to `length` positions; keys and values of a
        memory are projected here, once.

        Raises `UnsupportedError` where a mechanism does not decode, or keeps nothing of a memory.
        """
        own = self.mechanism.init_state(batch, length=length, device=device, dtype=dtype)
        if self.cross is None or memory is None:
            return BlockState(own)
        cross = self.cross.init_state(
            batch,
            length=length,
            device=device,
            dtype=dtype,
            source_BMD=memory.x_BMD,
            source_mask_BM=memory.context.key_mask_BM,
        )
        return BlockState(own, cross)

    def select_state(self, state: BlockState, index_B: Tensor) -> BlockState:
        """Return the state of these rows, in this order."""
        own = self.mechanism.select_state(state.own, index_B)
        if self.cross is None or state.cross is None:
            return BlockState(own)
        return BlockState(own, self.cross.select_state(state.cross, index_B))

    def _before(self, norm: nn.Module, x_BND: Tensor) -> Tensor:
        normed_BND: Tensor = norm(x_BND) if self.norms_first else x_BND
        return normed_BND

    def _after(self, norm: nn.Module, x_BND: Tensor) -> Tensor:
        normed_BND: Tensor = x_BND if self.norms_first else norm(x_BND)
        return normed_BND
