"""What the contract hands around: sizes, requests, results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from torch import Tensor

from lra.core.errors import UsageError

if TYPE_CHECKING:
    from attention_impls.contract.position import Position


class MechanismConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Hyper-parameters of a mechanism; the defaults are the paper's. Unknown fields are refused."""


@dataclass(frozen=True)
class Dims:
    """Sizes that every mechanism of a model shares."""

    width: int
    """D, of the residual stream."""
    qkv_width: int
    """Of all heads' queries (keys, values) together."""
    heads: int
    max_length: int
    """Longest input, a class token included."""
    layers: int = 1
    dropout: float = 0.0
    """On attention weights, where the mechanism has any."""
    projection_biases: bool = True

    def __post_init__(self) -> None:
        """Refuse what is no size, no share, and heads that do not divide the width."""
        for name in ("width", "qkv_width", "heads", "max_length", "layers"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name} is {getattr(self, name)}; choose 1 or more")
        if not 0.0 <= self.dropout < 1.0:
            raise UsageError(f"dropout is {self.dropout:g}; choose 0 or more, and less than 1")
        if self.qkv_width % self.heads:
            raise UsageError(
                f"{self.heads} heads do not divide the qkv width {self.qkv_width}; "
                "choose a multiple"
            )

    @property
    def head_width(self) -> int:
        """Width of one head."""
        return self.qkv_width // self.heads


@dataclass(frozen=True)
class Context:
    """What one call asks for, beside the tensors."""

    causal: bool = False
    """Queries see no later key; with more keys than queries, the last of both coincide."""
    query_mask_BN: Tensor | None = None
    """Which inputs are real; None where none is padded."""
    key_mask_BM: Tensor | None = None
    """Which source positions are real. Without a source the keys are the inputs, and the base
    fills in their mask; with a state, that of the remembered keys comes before it."""
    position: Position | None = None
    special_BN: Tensor | None = None
    """Which inputs a mechanism with global positions makes global; None leaves it to its own
    choice. Others have no use for it."""


class Out(NamedTuple):
    """What a layer returns."""

    y_BND: Tensor
    state: Any = None
    """Where a state was given: that state, advanced by N positions."""


class Heads(NamedTuple):
    """What an attention attends with, by head."""

    q_BHNK: Tensor | None
    k_BGMK: Tensor | None
    v_BGMV: Tensor
    extra: Mapping[str, Any] = MappingProxyType({})
    """Whatever else of the input it needs, as keyword arguments of `attend`, `oracle` and
    `support`."""


class Exact(NamedTuple):
    """The softmax attention that a mechanism comes near."""

    heads: Heads
    """What the mechanism attends with, of the queries, keys and values that it is given."""
    factor: float
    """Logits are queries times keys times this."""
    pattern_NM: Tensor | None = None
    """Which pairs it is over; None for all permitted ones."""


class Convergence(NamedTuple):
    """A law of an approximation: its mean squared error falls as budget^-rate."""

    budgets: tuple[tuple[int, MechanismConfig], ...]
    """Budgets in the range where the law holds, and the configurations that have them."""
    rate: float = 1.0
