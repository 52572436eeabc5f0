"""The attention contract: a layer that mixes positions.

To add a mechanism, write one file beside the others that defines one public `Attention` subclass
with a `card`, a `Config` and an `attend`; read `dense/full.py` first. The shape suffixes below are
the contract's vocabulary:

    B batch   N queries   M keys   D model width   H heads   G heads of keys and values
    K width of a query or key head   V width of a value head   P projected (compressed) keys
    R features

Masks are boolean and True means "may be attended to"; a row with nothing to attend to gives zero
with finite gradients. What padded positions hold never matters: the base zeroes them on the way in
and on the way out.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import msgspec
import torch
from torch import Tensor, nn

from lra.core.cards import AttentionCard, PositionCard
from lra.core.errors import UnsupportedError, UsageError


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
        """Refuse heads that do not divide the width."""
        if self.qkv_width % self.heads:
            raise UsageError(
                f"{self.heads} heads do not divide the qkv width {self.qkv_width}; "
                "choose a multiple"
            )

    @property
    def head_width(self) -> int:
        """Width of one head."""
        return self.qkv_width // self.heads


class Position(nn.Module, ABC):
    """A position scheme. Each hook does nothing by default; a scheme overrides what it acts on.

    One instance serves all layers of a model.
    """

    card: ClassVar[PositionCard]

    def __init__(self, dims: Dims) -> None:
        super().__init__()
        self.dims = dims

    def embed(self, positions_N: Tensor) -> Tensor | None:
        """Return what is added to the embedded input, (N, D), or None."""
        return None

    def rotate(self, x_BHNK: Tensor, positions_N: Tensor) -> Tensor:
        """Return queries or keys turned by their positions."""
        return x_BHNK

    def logits(self, rows_N: Tensor, columns_M: Tensor) -> Tensor | None:
        """Return what is added to a block of logits, (H, N, M) float32, or None.

        Called block by block, so that a window stays a window.
        """
        return None


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


class Convergence(NamedTuple):
    """A law of an approximation: its mean squared error falls as budget^-rate."""

    budgets: tuple[tuple[int, MechanismConfig], ...]
    """Budgets in the range where the law holds, and the configurations that have them."""
    rate: float = 1.0


class Layer(nn.Module, ABC):
    """A layer that mixes positions: (B, N, D) to (B, N, D)."""

    card: ClassVar[AttentionCard]
    Config: ClassVar[type[MechanismConfig]] = MechanismConfig
    trials: ClassVar[tuple[MechanismConfig, ...]] = ()
    """Configurations that the conformance kit tries beside the one asked for."""
    unused: ClassVar[tuple[str, ...]] = ()
    """How the names of parameters begin that are there for fair counts and never used."""

    def __init__(
        self,
        dims: Dims,
        config: MechanismConfig | None = None,
        *,
        layer_index: int = 0,
        shared: nn.Module | None = None,
        seed: int = 0,
    ) -> None:
        """Keep the sizes and the configuration.

        `shared` is what `build_shared` returned for the whole model; `seed` feeds the mechanism's
        own draws (parameters are drawn from torch's default generator, as everywhere).
        """
        super().__init__()
        self.dims = dims
        self.config = config if config is not None else self.Config()
        self.layer_index = layer_index
        self.seed = seed

    @classmethod
    def build_shared(cls, dims: Dims, config: MechanismConfig) -> nn.Module | None:
        """Return parameters that all layers of a model share; none by default."""
        return None

    @classmethod
    def exact_at(cls, n: int) -> MechanismConfig | None:
        """Return a configuration that is softmax attention at n positions; None where none is."""
        return cls.Config() if cls.card.softmax == "always" else None

    @classmethod
    def convergence(cls) -> Convergence | None:
        """Return the law by which it comes near softmax attention; None where it has none."""
        return None

    @property
    def borders(self) -> tuple[int, ...]:
        """Lengths at which the computation takes another course, such as those of its blocks."""
        return ()

    @abstractmethod
    def forward(
        self,
        x_BND: Tensor,
        context: Context,
        *,
        source_BMD: Tensor | None = None,
        state: Any = None,
    ) -> Out:
        """Mix positions. A call with a state continues it: prefill, then decode."""

    def reference(
        self, x_BND: Tensor, context: Context, *, source_BMD: Tensor | None = None
    ) -> Tensor:
        """Return what `forward` must, (B, N, D), by way of a dense float64 oracle."""
        raise UnsupportedError(f"{self.name} has no oracle; compare with nothing")

    def init_state(
        self, batch: int, *, length: int, device: torch.device, dtype: torch.dtype
    ) -> Any:
        """Return an empty decode state for up to `length` positions: a NamedTuple of tensors,
        batch first, with a field `seen_B` (int64, on the CPU) that counts the positions consumed.
        """
        raise UnsupportedError(f"{self.name} keeps no decode state; its card claims no decoding")

    def after_step(self, step: int) -> None:
        """Run after each optimiser step; the only place where persistent draws may change."""

    @property
    def name(self) -> str:
        """The mechanism's name: its file's stem."""
        return type(self).__module__.rpartition(".")[2]

    def _refuse(
        self, x_BND: Tensor, context: Context, source_BMD: Tensor | None, state: Any
    ) -> None:
        """Raise `UnsupportedError` for whatever the card does not claim."""
        can = self.card.capabilities
        if context.causal and can.causal == "no":
            raise UnsupportedError(f"{self.name} cannot be causal; ask for bidirectional attention")
        if not context.causal and not can.bidirectional:
            raise UnsupportedError(f"{self.name} is causal only; ask for causal attention")
        if source_BMD is not None and not can.cross:
            raise UnsupportedError(f"{self.name} cannot attend to another sequence; leave it out")
        if state is not None and can.decode == "none":
            raise UnsupportedError(f"{self.name} cannot decode step by step; call it without state")
        if state is not None and not context.causal:
            raise UnsupportedError(f"{self.name}: a decode state needs causal attention")
        if can.padding == "none" and (
            context.query_mask_BN is not None or context.key_mask_BM is not None
        ):
            raise UnsupportedError(f"{self.name} cannot mask padding; give rows of equal length")
        position = context.position
        if position is not None:
            acts_on = position.card.acts_on
            if acts_on == "logits" and not can.bias:
                raise UnsupportedError(
                    f"{self.name} has no logits to add positions to; choose another position scheme"
                )
            if acts_on == "queries-keys" and not can.rotary:
                raise UnsupportedError(
                    f"{self.name} cannot use rotary positions; choose another position scheme"
                )
        if can.fixed_length:
            longest = max(x_BND.shape[1], 0 if source_BMD is None else source_BMD.shape[1])
            if longest > self.dims.max_length:
                raise UnsupportedError(
                    f"{self.name} was built for at most {self.dims.max_length} positions, "
                    f"got {longest}; build it with a larger max_length"
                )


class Attention(Layer):
    """A layer with queries, keys and values, projected alike for all, so that counts are fair.

    A subclass writes `attend` and `oracle`; where algebra lets it skip a projection it overrides
    `mix`, and a law holds the two to the same result.
    """

    def __init__(
        self,
        dims: Dims,
        config: MechanismConfig | None = None,
        *,
        layer_index: int = 0,
        shared: nn.Module | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(dims, config, layer_index=layer_index, shared=shared, seed=seed)
        biases, shared_width = dims.projection_biases, self.kv_heads * dims.head_width
        self.query = nn.Linear(dims.width, dims.qkv_width, bias=biases)
        self.key = nn.Linear(dims.width, shared_width, bias=biases)
        self.value = nn.Linear(dims.width, shared_width, bias=biases)
        self.output = nn.Linear(dims.qkv_width, dims.width, bias=biases)
        for projection in (self.query, self.key, self.value, self.output):
            nn.init.xavier_uniform_(projection.weight)
            if biases:
                nn.init.zeros_(projection.bias)

    @property
    def kv_heads(self) -> int:
        """G, heads of keys and values; each serves H / G heads of queries in a row."""
        return self.dims.heads

    def forward(
        self,
        x_BND: Tensor,
        context: Context,
        *,
        source_BMD: Tensor | None = None,
        state: Any = None,
    ) -> Out:
        """Refuse, zero the padding, mix, merge the heads, zero the padding."""
        self._refuse(x_BND, context, source_BMD, state)
        if source_BMD is None and context.key_mask_BM is None:
            context = replace(context, key_mask_BM=context.query_mask_BN)
        x_BND = zero_padding(x_BND, context.query_mask_BN)
        if source_BMD is not None:
            source_BMD = zero_padding(source_BMD, context.key_mask_BM)
        out_BHNV, state = self.mix(x_BND, context, source_BMD, state)
        y_BND = self.output(merge_heads(out_BHNV))
        return Out(zero_padding(y_BND, context.query_mask_BN), state)

    def reference(
        self, x_BND: Tensor, context: Context, *, source_BMD: Tensor | None = None
    ) -> Tensor:
        """Return the projections around the oracle, (B, N, D)."""
        if source_BMD is None and context.key_mask_BM is None:
            context = replace(context, key_mask_BM=context.query_mask_BN)
        x_BND = zero_padding(x_BND, context.query_mask_BN)
        if source_BMD is not None:
            source_BMD = zero_padding(source_BMD, context.key_mask_BM)
        q, k, v, extra = self.project(x_BND, context, source_BMD, None)
        out_BHNV, _ = self.oracle(q, k, v, context, **extra)
        y_BND = self.output(merge_heads(out_BHNV.to(x_BND.dtype)))
        return zero_padding(y_BND, context.query_mask_BN)

    def mix(
        self, x_BND: Tensor, context: Context, source_BMD: Tensor | None, state: Any
    ) -> tuple[Tensor, Any]:
        """Return (B, H, N, V) from inputs: project, then attend."""
        q, k, v, extra = self.project(x_BND, context, source_BMD, state)
        return self.attend(q, k, v, context, state, **extra)

    def project(
        self, x_BND: Tensor, context: Context, source_BMD: Tensor | None, state: Any
    ) -> Heads:
        """Return queries, keys and values by head, turned by position where the scheme does so."""
        source = x_BND if source_BMD is None else source_BMD
        q_BHNK = split_heads(self.query(x_BND), self.dims.heads)
        k_BGMK = split_heads(self.key(source), self.kv_heads)
        v_BGMV = split_heads(self.value(source), self.kv_heads)
        position = context.position
        if position is not None and position.card.acts_on == "queries-keys":
            n, m = q_BHNK.shape[2], k_BGMK.shape[2]
            rows, columns = position_ids(n, m, context, state, q_BHNK.device)
            q_BHNK = position.rotate(q_BHNK, rows)
            k_BGMK = position.rotate(k_BGMK, columns)
        return Heads(q_BHNK, k_BGMK, v_BGMV)

    # What follows `context` differs: a state, and by keyword what `project` put in `extra`.
    @abstractmethod
    def attend(
        self, q_BHNK: Any, k_BGMK: Any, v_BGMV: Tensor, context: Context, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Any]:
        """Return (B, H, N, V) and the advanced state: the mechanism itself, fast."""

    def oracle(
        self, q_BHNK: Any, k_BGMK: Any, v_BGMV: Tensor, context: Context, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        """Return (B, H, N, V) and the weights (B, H, N, M), dense float64.

        The paper's formula, never the implementation: shares parameters and draws, no code path.
        Ours all have one; other people's have none.
        """
        raise UnsupportedError(f"{self.name} has no oracle; compare with nothing")

    def support(self, n: int, m: int, context: Context, *args: Any, **kwargs: Any) -> Tensor:
        """Return which of n queries may depend on which of m keys.

        Boolean, on the CPU: (N, M), or (B, H, N, M) where it depends on `extra`.
        """
        return causal_mask(n, m) if context.causal else torch.ones(n, m, dtype=torch.bool)


class Mixer(Layer):
    """A layer without queries and keys: a convolution, a recurrence, a transform.

    A subclass writes `mix` and `oracle`, with projections of its own.
    """

    def forward(
        self,
        x_BND: Tensor,
        context: Context,
        *,
        source_BMD: Tensor | None = None,
        state: Any = None,
    ) -> Out:
        """Refuse, zero the padding, mix, zero the padding."""
        self._refuse(x_BND, context, source_BMD, state)
        x_BND = zero_padding(x_BND, context.query_mask_BN)
        y_BND, state = self.mix(x_BND, context, state)
        return Out(zero_padding(y_BND, context.query_mask_BN), state)

    def reference(
        self, x_BND: Tensor, context: Context, *, source_BMD: Tensor | None = None
    ) -> Tensor:
        """Return the oracle's result, zero at padding, (B, N, D)."""
        x_BND = zero_padding(x_BND, context.query_mask_BN)
        y_BND = self.oracle(x_BND, context).to(x_BND.dtype)
        return zero_padding(y_BND, context.query_mask_BN)

    @abstractmethod
    def mix(self, x_BND: Tensor, context: Context, state: Any = None) -> tuple[Tensor, Any]:
        """Return (B, N, D) and the advanced state: the mechanism itself, fast."""

    @abstractmethod
    def oracle(self, x_BND: Tensor, context: Context) -> Tensor:
        """Return (B, N, D) in float64, by the paper's formula, written out plainly."""


def split_heads(x_BND: Tensor, heads: int) -> Tensor:
    """(B, N, H * K) to (B, H, N, K), a view."""
    batch, length, width = x_BND.shape
    return x_BND.view(batch, length, heads, width // heads).transpose(1, 2)


def merge_heads(x_BHNV: Tensor) -> Tensor:
    """(B, H, N, V) to (B, N, H * V)."""
    return x_BHNV.transpose(1, 2).flatten(-2)


def zero_padding(x_BND: Tensor, mask_BN: Tensor | None) -> Tensor:
    """Put zero where the mask is False, whatever stood there, NaN included."""
    return x_BND if mask_BN is None else x_BND.masked_fill(~mask_BN.unsqueeze(-1), 0.0)


def causal_mask(n: int, m: int, device: torch.device | None = None) -> Tensor:
    """(N, M) boolean: query i sees keys up to i + m - n, so that the last of both coincide."""
    return torch.ones(n, m, dtype=torch.bool, device=device).tril(m - n)


def seen(state: Any) -> int:
    """Return how many positions a decode state has consumed; 0 without one."""
    return 0 if state is None else int(state.seen_B[0])


def position_ids(
    n: int, m: int, context: Context, state: Any, device: torch.device
) -> tuple[Tensor, Tensor]:
    """Return positions of n queries and of m new keys, both from where the state stands.

    Causal queries are aligned at the end of the keys; others count from the start.
    """
    start = seen(state)
    offset = m - n if context.causal else 0
    rows_N = torch.arange(start + offset, start + offset + n, device=device)
    columns_M = torch.arange(start, start + m, device=device)
    return rows_N, columns_M


def default_scale(head_width: int) -> float:
    """1 / sqrt(head width): what logits are multiplied by."""
    return 1.0 / math.sqrt(head_width)
