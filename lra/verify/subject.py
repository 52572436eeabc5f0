"""A mechanism under test: built small, with inputs for the requests that its card allows.

B batch   N queries   M keys   D model width   H heads   K width of a query or key head
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import msgspec
import torch
from torch import Tensor, nn

from attention_impls.contract import (
    Attention,
    Context,
    Dims,
    Heads,
    Layer,
    MechanismConfig,
    Position,
    zero_padding,
)
from lra.adapters.directions import Directions
from lra.core import catalogue, loading
from lra.core.cards import AttentionCard
from lra.core.errors import LraError
from lra.core.findings import Case
from lra.verify.inputs import normal_inputs, real_positions, special_positions
from lra.verify.muting import draw_anew, is_muting
from lra.verify.rounding import DTYPES, rounding
from lra.verify.sizes import sizes_of

WIDTH, HEAD_WIDTH = 12, 8
"""Widths of the model and of one head where a case names no other: unequal, so that neither can
stand in for the other."""

ROOM = 1e-4
"""Tolerance for somebody's own code, relative to the largest output, where a law's is stricter: it
may compute in float32, whatever it is given."""

LONGEST = {False: 300, True: 2200}
"""Longest input by form, short and full, apart from the borders of a mechanism's blocks."""

PROBES = (1, 2, 3, 7, 16, 31, 37, 64, 65, 129)
"""Lengths tried with every mechanism, besides those around its own borders."""

ROUND, BEYOND = 512, 1031
"""Lengths beyond all these, each tried once by each law: one of whole blocks, and a prime."""


@dataclass(frozen=True)
class Subject:
    """A mechanism with a configuration, and the thoroughness of its trial."""

    mechanism: type[Layer]
    config: MechanismConfig
    full: bool = False
    """Whether to try the full form: longer inputs, and laws that take minutes."""
    device: str = "cpu"
    only: Case | None = None
    """The only case to try of a law; None tries all of its own."""
    in_float32: bool = False
    """Whether float32 stands in for float64."""
    reference: str = ""
    """Name that `lra.core.catalogue.find` finds the mechanism by, in another process too; empty
    where its class and module are all that is known."""
    called_plainly: bool = False
    """Whether somebody's own code has no parameter for causal: it is called without, and may be
    causal."""

    @property
    def card(self) -> AttentionCard:
        """Card of the mechanism."""
        return self.mechanism.card

    @property
    def is_attention(self) -> bool:
        """Whether it takes queries, keys and values of its own."""
        return issubclass(self.mechanism, Attention)

    @property
    def has_oracle(self) -> bool:
        """Whether it has its own dense form."""
        if issubclass(self.mechanism, Attention):
            return self.mechanism.oracle is not Attention.oracle
        return self.mechanism.reference is not Layer.reference

    @property
    def is_ours(self) -> bool:
        """Whether it was written for this contract, and not adapted to it."""
        return not self.card.assumed

    @property
    def home(self) -> str:
        """Module or path of the file that defines somebody's own code."""
        name = self.mechanism.__module__
        file = str(getattr(sys.modules.get(name), "__file__", ""))
        return file if name.startswith(loading.FILES) else name

    def allowed(self, tolerance: float, case: Case | None = None) -> float:
        """Return the tolerance of a comparison between two results of the mechanism itself, in
        float64 or in the type of a case."""
        own = tolerance if self.is_ours else max(tolerance, ROOM)
        return own if case is None else max(own, rounding(case))

    def dtype(self, case: Case) -> torch.dtype:
        """Return the type of a case's inputs and parameters."""
        return self.precise if case.dtype == "float64" else DTYPES[case.dtype]

    @cached_property
    def precise(self) -> torch.dtype:
        """Most precise dtype: float64, or float32 where somebody's own code takes nothing else."""
        if self.in_float32:
            return torch.float32
        if self.is_ours:
            return torch.float64
        case = Case(n=7, causal=not self.card.capabilities.bidirectional)
        try:
            layer = self.build(case, dtype=torch.float64)
            with torch.no_grad():
                layer(self.inputs(case, dtype=torch.float64)[0], self.context(case, layer))
        except RuntimeError as error:
            if "dtype" in str(error) or "scalar type" in str(error):
                return torch.float32
        except Exception:
            # Laws will find the error, with the case that shows it.
            return torch.float64
        return torch.float64

    @property
    def trains_quietly(self) -> bool:
        """Whether a training pass without dropout can be compared with another."""
        return not self.untrained

    @cached_property
    def untrained(self) -> str:
        """Why it is not tried in training; empty where it is. Ours always is, somebody else's where
        it draws nothing."""
        if self.is_ours:
            return ""
        case = Case(n=7, causal=not self.card.capabilities.bidirectional, training=True)
        try:
            layer = self.build(case, steady=False)
            x_BND = self.inputs(case)[0].detach()
            context = self.context(case, layer)
            before = torch.get_rng_state()
            first, second = (layer(x_BND, context).y_BND for _ in range(2))
        except LraError as error:
            return f"not tried in training: {error}"
        except Exception as error:
            # Laws will find the error, in evaluation.
            return f"not tried in training: it ends there in {type(error).__name__}"
        draws = not torch.equal(before, torch.get_rng_state())
        if not draws and torch.equal(first.nan_to_num(), second.nan_to_num()):
            return ""
        if not draws:
            return "not tried in training: two calls differ, and torch's generator has not moved"
        rates = [name for name in self.config.__struct_fields__ if "drop" in name]
        advice = f"; --set {rates[0]}=0 may end that" if rates else ""
        return f"not tried in training: it draws there{advice}"

    def width(self, case: Case) -> int:
        """Return the model's width; somebody's own module gets the usual one, that of all heads."""
        if self.is_square:
            return case.head_width * case.heads
        return WIDTH if case.width is None else case.width

    @property
    def is_square(self) -> bool:
        """Whether the model is as wide as all heads together, whatever a case says."""
        return self.mechanism.square or not self.is_ours

    @property
    def configs(self) -> tuple[MechanismConfig, ...]:
        """Configuration asked for, then the mechanism's own trials."""
        return (self.config, *self.mechanism.trials)

    def config_for(self, case: Case) -> MechanismConfig:
        """Return the configuration of a case, with as many heads of keys as it asks for."""
        config = self.configs[case.trial]
        if case.kv_heads is None:
            return config
        return msgspec.structs.replace(config, kv_heads=case.kv_heads)

    @cached_property
    def refusals(self) -> dict[str, str]:
        """Why it could not be built in some sizes, by these: filled by `refuses`."""
        return {}

    def refuses(self, case: Case) -> str:
        """Return why it cannot be built in the sizes of a case, empty where it can; somebody else's
        may also end there when called.

        Ours says so by an error of the arena's; any other error is a fault, for laws to find.
        """
        small = Case(
            n=7,
            causal=not self.card.capabilities.bidirectional,
            position=case.position,
            **sizes_of(case),
        )
        sizes = str(small).removeprefix("n=7 ").removeprefix("causal ")
        if sizes not in self.refusals:
            self.refusals[sizes] = self._why_refused(small)
        return self.refusals[sizes]

    def _why_refused(self, case: Case) -> str:
        try:
            layer = self.build(case)
            context = self.context(case, layer)
            if not self.is_ours:
                with torch.no_grad():
                    layer(self.inputs(case)[0], context)
        except LraError as error:
            return str(error)
        except Exception as error:
            return "" if self.is_ours else f"{type(error).__name__}: {error}"
        return ""

    def build(
        self,
        case: Case,
        *,
        dtype: torch.dtype | None = None,
        seed: int = 0,
        config: MechanismConfig | None = None,
        drawing: int | None = None,
        steady: bool = True,
        shared: nn.Module | None = None,
        **sizes: Any,
    ) -> Layer:
        """Return a small layer for a case, with biases that are not zero unless it asks for that;
        somebody's own also without parameters that are nearly zero.

        Parameters are drawn from torch's default generator, seeded by `drawing` or as the layer. In
        training it has no dropout, and no noise unless `config` asks for it. With `steady`
        somebody's own module draws the same at each call, so that fresh draws are found only by the
        laws on them.
        """
        asked = {
            "width": self.width(case),
            "qkv_width": case.head_width * case.heads,
            "heads": case.heads,
            "max_length": max(case.n, case.m or 0, *self.lengths),
            # In every other case it is not the last.
            "layers": case.layer + 1 + case.n % 2,
            "projection_biases": case.biases != "none",
            **sizes,
        }
        if not self.is_ours:
            asked["qkv_width"] = asked["width"]
        dims = Dims(**asked)
        if config is None:
            config = self.config_for(case)
            config = quiet(config) if case.training else config
        seed_torch(seed if drawing is None else drawing)
        # A part of its own is drawn in any case: what is drawn after it stays the same.
        own = self.mechanism.build_shared(dims, config)
        given = own if shared is None else shared
        layer = self.mechanism(dims, config, layer_index=case.layer, shared=given, seed=seed)
        for name, parameter in layer.named_parameters():
            if name.endswith("bias"):
                nn.init.normal_(parameter, std=float(case.biases == "drawn"))
            elif not self.is_ours and parameter.requires_grad and is_muting(parameter):
                draw_anew(parameter)
        if steady and not self.is_ours:
            for part in cast(Directions, layer.inner).children():
                part.register_forward_pre_hook(_draw_the_same)
        layer.train(case.training)
        return layer.to(self.device, self.dtype(case) if dtype is None else dtype)

    def inputs(
        self, case: Case, *, dtype: torch.dtype | None = None, scale: float = 1.0
    ) -> tuple[Tensor, Tensor | None]:
        """Return the input, (B, N, D), and the source, (B, M, D) or None; leaves with gradients."""
        dtype = self.dtype(case) if dtype is None else dtype
        x_BND = self._normal(case, case.n, 0, dtype, scale)
        source = None if case.m is None else self._normal(case, case.m, 1, dtype, scale)
        return x_BND, source

    def _normal(
        self, case: Case, length: int, stream: int, dtype: torch.dtype, scale: float
    ) -> Tensor:
        numbers = normal_inputs(case, length, self.width(case), stream).mul(scale)
        return numbers.to(self.device, dtype).requires_grad_()

    def mask(self, case: Case) -> Tensor | None:
        """Return the mask of real keys, (B, M) or, without a source, (B, N); None where all are."""
        mask = real_positions(case)
        return None if mask is None else mask.to(self.device)

    def context(self, case: Case, layer: Layer) -> Context:
        """Return the context of a case: masked inputs, or a masked source."""
        mask, special = self.mask(case), special_positions(case)
        return Context(
            causal=case.causal and not self.called_plainly,
            query_mask_BN=mask if case.m is None else None,
            key_mask_BM=mask,
            position=position(case.position, layer.dims, self.device),
            special_BN=None if special is None else special.to(self.device),
        )

    def heads(self, case: Case, layer: Layer, context: Context, scale: float = 1.0) -> Heads:
        """Return queries, keys and values as separate leaves, projected from a case's input times
        `scale`."""
        dtype = next(layer.parameters()).dtype
        x_BND, source_BMD = self.inputs(case, dtype=dtype, scale=scale)
        x_BND = zero_padding(x_BND, context.query_mask_BN)
        if source_BMD is not None:
            source_BMD = zero_padding(source_BMD, context.key_mask_BM)
        heads = cast(Attention, layer).project(x_BND, context, source_BMD, None)
        q, k, v = (None if x is None else x.detach().requires_grad_() for x in heads[:3])
        assert v is not None
        extra = {
            name: value.detach() if isinstance(value, Tensor) else value
            for name, value in heads.extra.items()
        }
        return Heads(q, k, v, extra)

    @cached_property
    def lengths(self) -> tuple[int, ...]:
        """Lengths to try: short ones, and those around the borders of its blocks."""
        around = {length for b in self._borders for length in (b - 1, b, b + 1, 2 * b + 1)}
        limit = LONGEST[self.full]
        return tuple(sorted({*PROBES, *(n for n in around if 0 < n <= limit)}))

    @cached_property
    def far(self) -> tuple[int, ...]:
        """Lengths beyond those, each tried once by a law: a round one, a prime, and one past each
        border that the others do not reach. A subject without any is tried on no long input."""
        past = {b + 1 for b in self._borders if LONGEST[False] <= b < LONGEST[True]}
        return tuple(sorted({ROUND, BEYOND, *past} - set(self.lengths)))

    @cached_property
    def _borders(self) -> tuple[int, ...]:
        width = self.width(Case(n=1, heads=1))
        dims = Dims(width=width, qkv_width=HEAD_WIDTH, heads=1, max_length=max(PROBES))
        shared = self.mechanism.build_shared(dims, self.config)
        return self.mechanism(dims, self.config, shared=shared).borders

    def claiming(self, claims: Mapping[str, object]) -> Subject:
        """Return the same mechanism with a card that claims more than its own."""
        capabilities = msgspec.structs.replace(self.card.capabilities, **claims)
        card = msgspec.structs.replace(self.card, capabilities=capabilities)
        bolder = type(
            self.mechanism.__name__,
            (self.mechanism,),
            {"card": card, "__module__": self.mechanism.__module__},
        )
        wordless = not self.is_ours and self.card.capabilities.causal == "no"
        return replace(self, mechanism=bolder, called_plainly=wordless)


def quiet(config: MechanismConfig) -> MechanismConfig:
    """Return a configuration without `noise`, the setting of mechanisms that draw in training."""
    return msgspec.structs.replace(config, noise=False) if hasattr(config, "noise") else config


def seed_torch(seed: int) -> None:
    """Seed torch's default generators, on the CPU and on GPUs.

    `torch.manual_seed` also keeps a traceback for each kind of device that is not there yet: a
    millisecond for each of thousands of calls, and memory that is never freed.
    """
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_available():
        torch.cuda.manual_seed_all(seed)


def _draw_the_same(*_: object) -> None:
    seed_torch(0)


def attend(layer: Layer, heads: Heads, context: Context) -> Tensor:
    """Return the attention over these heads, (B, H, N, V)."""
    q_BHNK, k_BGMK, v_BGMV, extra = heads
    out_BHNV, _ = cast(Attention, layer).attend(q_BHNK, k_BGMK, v_BGMV, context, **extra)
    return out_BHNV


def position(scheme: str, dims: Dims, device: str) -> Position | None:
    """Return a position scheme by name; None for `none`."""
    if scheme == "none":
        return None
    found: Position = loading.load(catalogue.find("position", scheme))(dims)
    return found.to(device)
