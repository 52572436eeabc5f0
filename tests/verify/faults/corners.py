"""Faults in one type, mode or step alone, where everything else is right."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attention_impls._oracle import softmax_oracle
from attention_impls.contract import Context, Dims, MechanismConfig, seen
from lra.core.cards import Capabilities
from verify.faults.dense import Dense, card

HALF = (torch.bfloat16, torch.float16)


class NoBiasUnderAutocast(Dense, law="precision", stranger=""):
    """Under autocast a fused kernel is called that takes no bias of positions."""

    def bias(self, context: Context, q: Tensor, k: Tensor) -> Tensor:
        if torch.is_autocast_enabled("cpu"):
            return torch.zeros((), dtype=q.dtype)
        return super().bias(context, q, k)


class NoMaskInHalfTraining(Dense, law="precision", stranger=""):
    """A kernel for training in half precision has no argument for a mask."""

    def permitted(self, logits: Tensor, causal: bool, mask: Tensor | None) -> Tensor:
        single = logits.dtype not in HALF and not torch.is_autocast_enabled("cpu")
        return super().permitted(logits, causal, mask if single or not self.training else None)


class TemperatureOfHalfUntrained(Dense, law="gradient_flow", stranger=""):
    """A temperature of its own is cast by way of numbers in half precision."""

    card = card(softmax="never")

    def prepare(self) -> None:
        self.temperature = nn.Parameter(torch.linspace(0.5, 1.5, self.dims.heads))

    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        own = self.temperature
        if q.dtype in HALF:
            own = torch.tensor(own.tolist(), dtype=q.dtype)
        return super().logits(q, k) * own.view(-1, 1, 1)

    def oracle(self, q: Tensor, k: Tensor, v: Tensor, context: Context) -> tuple[Tensor, Tensor]:
        return softmax_oracle(q.double() * self.temperature.double().view(-1, 1, 1), k, v, context)


class PrecisionLeftByRefusal(Dense, law="refusal", stranger=""):
    """Sets a precision of products for a call, and leaves it where the call is refused."""

    card = card(capabilities=Capabilities(bidirectional=True, causal="strict", padding="content"))

    def forward(self, x_BND: Tensor, context: Context, **named: Any) -> Any:
        before = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision("medium")
        found = super().forward(x_BND, context, **named)
        torch.set_float32_matmul_precision(before)
        return found


class DepthLeftByRefusal(Dense, law="refusal", stranger=""):
    """Counts the calls that it is inside of, and does not count down where one is refused."""

    card = card(
        softmax="never",
        capabilities=Capabilities(bidirectional=True, causal="strict", padding="content"),
    )

    def prepare(self) -> None:
        self.depth = 0

    def forward(self, x_BND: Tensor, context: Context, **named: Any) -> Any:
        self.depth += 1
        found = super().forward(x_BND, context, **named)
        self.depth -= 1
        return found

    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        return super().logits(q, k) / max(1, self.depth)


class ShapesPrinted(Dense, law="side_effects"):
    """A print of shapes was left in."""

    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        print(tuple(q.shape), tuple(k.shape))
        return super().logits(q, k)


_softmax = F.softmax


class SoftmaxReplaced(Dense, law="side_effects"):
    """Replaces torch's softmax by one that computes half precision in float32, for everybody."""

    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        F.softmax = lambda x, *rest, **named: _softmax(x.float(), *rest, **named).to(x.dtype)
        return super().logits(q, k)


class StridesOfSourceAssumed(Dense, law="strides", stranger=""):
    """Reads another sequence by the strides of a contiguous one."""

    def project(self, x: Tensor, context: Context, source: Tensor | None, state: Any) -> Any:
        if source is not None and source.untyped_storage().nbytes() >= source.nbytes > 0:
            source = source.as_strided(source.shape, (source[0].numel(), source.shape[2], 1))
        return super().project(x, context, source, state)


class _Softmax(torch.autograd.Function):
    """Softmax whose weights are numbers to its backward pass."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor) -> Tensor:
        ctx.weights = logits.softmax(-1)
        return ctx.weights.clone()  # type: ignore[no-any-return]

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> Tensor:  # type: ignore[override]
        product = upstream * ctx.weights
        return product - ctx.weights * product.sum(-1, keepdim=True)  # type: ignore[no-any-return]


class SecondDerivativeLostInSingle(Dense, law="double_backward"):
    """In float32 a softmax of its own, whose gradient is right and has none itself."""

    def weights(self, logits: Tensor, permitted: Tensor) -> Tensor:
        if logits.dtype != torch.float32:
            return super().weights(logits, permitted)
        return _Softmax.apply(logits.masked_fill(~permitted, -1e30)) * permitted  # type: ignore[no-any-return]


class _ReadTwice(torch.autograd.Function):
    """Weights that are dropped, times values; the backward pass computes and drops them anew."""

    @staticmethod
    def forward(ctx: Any, weights: Tensor, v: Tensor, rate: float) -> Tensor:
        ctx.save_for_backward(weights, v)
        ctx.rate = rate
        return F.dropout(weights, rate) @ v

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, Tensor, None]:  # type: ignore[override]
        weights, v = ctx.saved_tensors
        return upstream @ v.mT, F.dropout(weights, ctx.rate).mT @ upstream, None


class HalfDrawnTwice(Dense, law="dropout_gradient", stranger=""):
    """In half precision the backward pass draws what is dropped anew."""

    def read(self, q: Tensor, k: Tensor, v: Tensor, context: Context) -> Tensor:
        if q.dtype not in HALF or not self.training or not self.dims.dropout:
            return super().read(q, k, v, context)
        logits = self.logits(q, k) + self.bias(context, q, k)
        permitted = self.permitted(logits, context.causal, context.key_mask_BM)
        return _ReadTwice.apply(self.weights(logits, permitted), v, self.dims.dropout)  # type: ignore[no-any-return]


class LateMaskHidesPrompt(Dense, law="decode", stranger=""):
    """The first mask that comes in decoding begins with the positions that had none."""

    def remember(self, state: Any, k: Tensor, v: Tensor, mask: Tensor | None) -> Any:
        if mask is not None and seen(state) and not bool(state.padded_B.any()):
            state.mask_BT[:, : seen(state)] = False
        return super().remember(state, k, v, mask)


class StepBiasTransposed(Dense, law="decode", stranger=""):
    """With a state the bias has rows and columns exchanged, which ALiBi does not feel."""

    def prepare(self) -> None:
        self.steps = False

    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, context: Context, state: Any = None
    ) -> tuple[Tensor, Any]:
        self.steps = state is not None
        return super().attend(q, k, v, context, state)

    def bias(self, context: Context, q: Tensor, k: Tensor) -> Tensor:
        n, m = q.shape[2], k.shape[2]
        if not self.steps or context.position is None:
            return super().bias(context, q, k)
        found = context.position.logits(torch.arange(m), torch.arange(n) + m - n)
        return torch.zeros((), dtype=q.dtype) if found is None else found.mT.to(q.dtype)


class KernelConfig(MechanismConfig, frozen=True):
    """A choice of three kernels."""

    kernel: Literal["plain", "cosine", "squared"] = "plain"


class ThirdKernelFallsThrough(Dense, law="setting_felt", stranger=""):
    """One of three kernels was never written, and the first is taken."""

    card = card(softmax="never")
    Config = KernelConfig

    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        return super().logits(self._unit(q), self._unit(k))

    def _unit(self, x: Tensor) -> Tensor:
        assert isinstance(self.config, KernelConfig)
        return F.normalize(x, dim=-1) if self.config.kernel == "cosine" else x

    def oracle(self, q: Tensor, k: Tensor, v: Tensor, context: Context) -> tuple[Tensor, Tensor]:
        return softmax_oracle(self._unit(q), self._unit(k), v, context)


class AllExamplesWithAll(Dense, law="operation_growth", stranger=""):
    """Multiplies the queries of all examples with the keys of all, and takes the diagonal."""

    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        every = torch.einsum("bhnk,chmk->bchnm", q, k) * q.shape[-1] ** -0.5
        return every.diagonal(dim1=0, dim2=1).movedim(-1, 0)


class _Temperatures(nn.Module):
    """A table of temperatures by length, for all layers."""

    def __init__(self) -> None:
        super().__init__()
        self.known: dict[int, float] = {}


class TemperatureOfFirstLayer(Dense, law="sharing", stranger=""):
    """Layers share a table of temperatures by length, which the first to come fills with its
    own."""

    card = card(softmax="never")
    table: _Temperatures

    @classmethod
    def build_shared(cls, dims: Dims, config: MechanismConfig) -> nn.Module:
        return _Temperatures()

    def __init__(
        self, dims: Dims, config: MechanismConfig | None = None, *, shared: Any = None, **rest: Any
    ) -> None:
        super().__init__(dims, config, **rest)
        self.table = shared

    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        known = self.table.known.setdefault(k.shape[2], self._own())
        return super().logits(q, k) * known

    def oracle(self, q: Tensor, k: Tensor, v: Tensor, context: Context) -> tuple[Tensor, Tensor]:
        return softmax_oracle(q * self._own(), k, v, context)

    def _own(self) -> float:
        return 1.0 + self.layer_index / 8


class StepsPaddedToTheWhole(Dense, law="decode_growth", stranger=""):
    """A step's queries are padded to as many as there are keys, so that one mask fits."""

    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, context: Context, state: Any = None
    ) -> tuple[Tensor, Any]:
        if state is None:
            return super().attend(q, k, v, context)
        state, k, v, mask = self.remember(state, k, v, context.key_mask_BM)
        n, m = q.shape[2], k.shape[2]
        out = self.read(F.pad(q, (0, 0, m - n, 0)), k, v, replace(context, key_mask_BM=mask))
        return out[:, :, m - n :], state
