"""Values of the contract: configurations, requests, results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec
from torch import Tensor

from attention_impls.contract.position import Position


class MechanismConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Hyper-parameters of a mechanism; the defaults are the paper's. Unknown fields are refused."""


@dataclass(frozen=True)
class Context:
    """Direction, masks and position scheme of one call."""

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
    mask_BNM: Tensor | None = None
    """Which pairs of a query and a key may meet, beside what causality and padding permit; None
    where all may."""
    positions_BN: Tensor | None = None
    """Places of the queries, and without a source of the keys, int64; None counts from 0, causal
    queries from where they stand among the keys. Causality goes by index in the row, never by
    place."""
    source_positions_BM: Tensor | None = None
    """Places of a source's keys, int64; None counts from 0. Without a source the base fills in the
    queries' places."""


class Out(NamedTuple):
    """Output of a layer, and its state after these positions."""

    y_BND: Tensor
    state: Any = None
    """Where a state was given: that state, advanced by N positions."""


class CrossState(NamedTuple):
    """State of a layer that reads another sequence: made of it once, read by all later queries."""

    kept: Any
    """All that the layer needs of that sequence: a NamedTuple of tensors, batch first."""
    seen_B: Tensor
    """int64, on the CPU: queries answered so far."""


class Heads(NamedTuple):
    """Queries, keys and values by head."""

    q_BHNK: Tensor | None
    k_BGMK: Tensor | None
    v_BGMV: Tensor
    extra: Mapping[str, Any] = MappingProxyType({})
    """Whatever else of the input it needs, as keyword arguments of `attend`, `oracle` and
    `support`."""


class Exact(NamedTuple):
    """The softmax attention that a mechanism comes near."""

    heads: Heads
    """Queries, keys and values of that softmax, made of the projected ones."""
    factor: float
    """Logits are queries times keys times this."""
    pattern_NM: Tensor | None = None
    """Which pairs it is over; None for all permitted ones."""


class Convergence(NamedTuple):
    """A law of an approximation: its mean squared error falls as budget^-rate."""

    budgets: tuple[tuple[int, MechanismConfig], ...]
    """Budgets in the range where the law holds, and the configurations that have them."""
    rate: float = 1.0
