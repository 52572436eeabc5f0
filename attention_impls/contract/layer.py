"""A layer that mixes positions: what every mechanism is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from attention_impls.contract.dims import Dims
from attention_impls.contract.tensors import select_rows, zero_padding
from attention_impls.contract.values import (
    Context,
    Convergence,
    CrossState,
    MechanismConfig,
    Out,
)
from lra.core.cards import AttentionCard
from lra.core.errors import UnsupportedError, UsageError


class Layer(nn.Module, ABC):
    """A layer that mixes positions: (B, N, D) to (B, N, D)."""

    card: ClassVar[AttentionCard]
    Config: ClassVar[type[MechanismConfig]] = MechanismConfig
    trials: ClassVar[tuple[MechanismConfig, ...]] = ()
    """Configurations that the conformance kit tries beside the one asked for."""
    unused: ClassVar[tuple[str, ...]] = ()
    """How the names of parameters begin that are there for fair counts and never used."""
    square: ClassVar[bool] = False
    """Whether the model has to be as wide as all heads together."""
    crosses_causally: ClassVar[bool] = True
    """Whether attention to another sequence may be causal, where it may be at all."""
    mixes_queries: ClassVar[bool] = False
    """Whether an output may depend on other queries too, as landmarks among them make it."""

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

    @classmethod
    def predicted_error(
        cls, config: MechanismConfig, *, head_width: int, input_scale: float, causal: bool = False
    ) -> float | None:
        """Return the relative error of the output against softmax attention that theory predicts.

        The root of its mean square, for many keys, with queries and keys N(0, 1) times
        `input_scale` and values N(0, 1). None where nothing is predicted.
        """
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

    def operations(self, n: int, *, causal: bool = False) -> int:
        """Operations of one forward pass over one example of n positions, projections included:
        those that `lra.measure.operations.count_operations` counts (products; an addition and a
        multiplication are two).

        By formula, for n from 1 on and a direction that the card claims, as the layer works on the
        device it stands on: evaluated, in float32, without padding, state or positions.
        """
        raise UnsupportedError(f"{self.name} declares no operations; count those of a call instead")

    def init_state(
        self,
        batch: int,
        *,
        length: int,
        device: torch.device,
        dtype: torch.dtype,
        source_BMD: Tensor | None = None,
        source_mask_BM: Tensor | None = None,
    ) -> Any:
        """Return a state for up to `length` positions, of numbers of this dtype: a NamedTuple of
        tensors, batch first, with a field `seen_B` (int64, on the CPU) that counts the positions
        consumed.

        Without a source it is the empty state of decoding. With one it is a `CrossState`: later
        calls give that state in place of the source and of its mask, which are not read again, and
        all but `seen_B` stays as it is. Raises `UnsupportedError` where the card claims neither,
        and `UsageError` for a source that does not fit.
        """
        if source_BMD is None:
            return self.empty_state(batch, length=length, device=device, dtype=dtype)
        self._refuse_source(batch, source_BMD, source_mask_BM)
        kept = self.keep_source(zero_padding(source_BMD, source_mask_BM), source_mask_BM, dtype)
        return CrossState(kept, torch.zeros(batch, dtype=torch.int64))

    def empty_state(
        self, batch: int, *, length: int, device: torch.device, dtype: torch.dtype
    ) -> Any:
        """Return the state before the first position; for `init_state` to call."""
        raise UnsupportedError(f"{self.name} keeps no decode state; its card claims no decoding")

    def keep_source(self, source_BMD: Tensor, mask_BM: Tensor | None, dtype: torch.dtype) -> Any:
        """Return what later queries need of a source, zero at padding; for `init_state` to call."""
        raise UnsupportedError(f"{self.name} keeps nothing of another sequence; give it each time")

    def select_state(self, state: Any, index_B: Tensor) -> Any:
        """Return the state of these rows, in this order, and leave the old one as it was: beam
        search repeats and drops rows so. `index_B` is int64."""
        return select_rows(state, index_B)

    def after_step(self, step: int) -> None:
        """Run after each optimiser step; the only place where persistent draws may change."""

    @property
    def name(self) -> str:
        """The mechanism's name: its file's stem."""
        return type(self).__module__.rpartition(".")[2]

    def _refuse(
        self, x_BND: Tensor, context: Context, source_BMD: Tensor | None, state: Any
    ) -> None:
        """Raise `UnsupportedError` for whatever the card does not claim, and `UsageError` for masks
        that do not fit the inputs.
        """
        can = self.card.capabilities
        if context.causal and can.causal == "no":
            raise UnsupportedError(f"{self.name} cannot be causal; ask for bidirectional attention")
        if not context.causal and not can.bidirectional:
            raise UnsupportedError(f"{self.name} is causal only; ask for causal attention")
        if source_BMD is not None and not can.cross:
            raise UnsupportedError(f"{self.name} cannot attend to another sequence; leave it out")
        if source_BMD is not None and context.causal and not self.crosses_causally:
            raise UnsupportedError(
                f"{self.name} cannot attend to another sequence causally; ask for all of it"
            )
        if isinstance(state, CrossState):
            self._refuse_cross_state(context, source_BMD)
        elif state is not None and can.decode == "none":
            raise UnsupportedError(f"{self.name} cannot decode step by step; call it without state")
        elif state is not None and not context.causal:
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
        self._refuse_length(max(x_BND.shape[1], 0 if source_BMD is None else source_BMD.shape[1]))
        self._refuse_mask("query_mask_BN", context.query_mask_BN, x_BND)
        self._refuse_mask(
            "key_mask_BM", context.key_mask_BM, x_BND if source_BMD is None else source_BMD
        )
        if context.mask_BNM is not None:
            self._refuse_pairs(context.mask_BNM, x_BND, source_BMD, state)
        if context.positions_BN is not None or context.source_positions_BM is not None:
            self._refuse_places(x_BND, context, source_BMD, state)

    def _refuse_cross_state(self, context: Context, source_BMD: Tensor | None) -> None:
        """Raise `UnsupportedError` for what a state of another sequence cannot be asked, and
        `UsageError` for what it holds already."""
        self._refuse_keeping()
        if context.causal:
            raise UnsupportedError(
                f"{self.name}: a state of another sequence is read whole; ask for all of it"
            )
        position = context.position
        if position is not None and position.card.acts_on in ("queries-keys", "logits"):
            raise UnsupportedError(
                f"{self.name}: a state of another sequence has no positions; leave them out"
            )
        if source_BMD is not None or context.key_mask_BM is not None:
            raise UsageError(
                f"{self.name}: the state holds the source and its mask; give the state alone"
            )

    def _refuse_source(self, batch: int, source_BMD: Tensor, mask_BM: Tensor | None) -> None:
        """Raise `UnsupportedError` for a source that the card does not claim to keep, and
        `UsageError` for one that does not fit."""
        self._refuse_keeping()
        if len(source_BMD) != batch:
            raise UsageError(
                f"{self.name}: a state for {batch} rows was asked of a source of "
                f"{len(source_BMD)}; give as many"
            )
        if self.card.capabilities.padding == "none" and mask_BM is not None:
            raise UnsupportedError(f"{self.name} cannot mask padding; give rows of equal length")
        self._refuse_length(source_BMD.shape[1])
        self._refuse_mask("source_mask_BM", mask_BM, source_BMD)

    def _refuse_keeping(self) -> None:
        """Raise `UnsupportedError` where the card claims no state of another sequence."""
        if self.card.capabilities.cross_decode == "none":
            raise UnsupportedError(
                f"{self.name} keeps no state of another sequence; give the sequence each time"
            )

    def _refuse_length(self, longest: int) -> None:
        """Raise `UnsupportedError` beyond the length that parameters are tied to."""
        if self.card.capabilities.fixed_length and longest > self.dims.max_length:
            raise UnsupportedError(
                f"{self.name} was built for at most {self.dims.max_length} positions, "
                f"got {longest}; build it with a larger max_length"
            )

    def _refuse_mask(self, name: str, mask: Tensor | None, masked_BND: Tensor) -> None:
        """Raise `UsageError` unless it is boolean and has one element for each position."""
        wanted = tuple(masked_BND.shape[:2])
        if mask is not None and (mask.dtype != torch.bool or mask.shape != wanted):
            raise UsageError(
                f"{self.name}: {name} is {mask.dtype} of shape {tuple(mask.shape)}; "
                f"give torch.bool of shape {wanted}, True where a position is real"
            )

    def _refuse_pairs(
        self, mask_BNM: Tensor, x_BND: Tensor, source_BMD: Tensor | None, state: Any
    ) -> None:
        """Raise `UnsupportedError` for a mask of pairs that the card does not claim, or beside a
        state; `UsageError` unless it is boolean and has one element for each pair.
        """
        if not self.card.capabilities.arbitrary_mask:
            raise UnsupportedError(f"{self.name} cannot mask single pairs; leave mask_BNM out")
        if state is not None:
            raise UnsupportedError(
                f"{self.name}: mask_BNM says nothing of the keys that a state remembers; "
                "leave one of both out"
            )
        m = (x_BND if source_BMD is None else source_BMD).shape[1]
        wanted = (*x_BND.shape[:2], m)
        if mask_BNM.dtype != torch.bool or mask_BNM.shape != wanted:
            raise UsageError(
                f"{self.name}: mask_BNM is {mask_BNM.dtype} of shape {tuple(mask_BNM.shape)}; "
                f"give torch.bool of shape {wanted}, True where a query may attend to a key"
            )

    def _refuse_places(
        self, x_BND: Tensor, context: Context, source_BMD: Tensor | None, state: Any
    ) -> None:
        """Raise `UnsupportedError` for places that the card does not claim, or for a bias of places
        that a state forgets; `UsageError` unless they are int64, one for each position.
        """
        if not self.card.capabilities.positions_by_index:
            raise UnsupportedError(
                f"{self.name} tells positions apart by their order; leave their places out"
            )
        position = context.position
        if state is not None and position is not None and position.card.acts_on == "logits":
            raise UnsupportedError(
                f"{self.name}: a state remembers no places for a bias of positions; "
                "choose a scheme that turns queries and keys, or leave the places out"
            )
        if source_BMD is None and context.source_positions_BM is not None:
            raise UsageError(
                f"{self.name}: source_positions_BM without a source; leave it out, keys have the "
                "places of the queries"
            )
        placed = {"positions_BN": (context.positions_BN, x_BND)}
        if source_BMD is not None:
            placed["source_positions_BM"] = (context.source_positions_BM, source_BMD)
        for name, (places, of) in placed.items():
            wanted = tuple(of.shape[:2])
            if places is not None and (places.dtype != torch.int64 or places.shape != wanted):
                raise UsageError(
                    f"{self.name}: {name} is {places.dtype} of shape {tuple(places.shape)}; "
                    f"give torch.int64 of shape {wanted}, a place for each position"
                )
