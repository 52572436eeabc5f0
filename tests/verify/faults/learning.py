"""Faults of training: dropout, gradients written by hand, what is frozen, modes."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from attention_impls.contract import Context, Heads
from verify.faults.dense import Dense, card


class FusedWithoutItsBias(Dense, law="gradient_modes", stranger=""):
    """Where nobody asks for gradients a fused kernel takes over, which is not told of positions."""

    def read(self, q: Tensor, k: Tensor, v: Tensor, context: Context) -> Tensor:
        if torch.is_grad_enabled():
            return super().read(q, k, v, context)
        return super().read(q, k, v, Context(context.causal, key_mask_BM=context.key_mask_BM))


class HalfWithoutGradients(Dense, law="gradient_modes"):
    """In float32 and without gradients weights are rounded to bfloat16, as for generation."""

    def weights(self, logits: Tensor, permitted: Tensor) -> Tensor:
        weights = super().weights(logits, permitted)
        if logits.dtype == torch.float32 and not torch.is_grad_enabled():
            return weights.bfloat16().float()
        return weights


class LogitsClippedBackwards(Dense, law="gradient_modes"):
    """In training the gradient of the logits is clipped, against a loss that once diverged."""

    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        logits = super().logits(q, k)
        if self.training and logits.requires_grad:
            logits.register_hook(lambda gradient: gradient.clamp(-0.05, 0.05))
        return logits


class _Product(torch.autograd.Function):
    """Weights times values, by hand; nothing is wrong with it."""

    @staticmethod
    def forward(ctx: Any, weights: Tensor, v: Tensor) -> Tensor:
        ctx.save_for_backward(weights, v)
        return weights @ v

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> Any:  # type: ignore[override]
        weights, v = ctx.saved_tensors
        return upstream @ v.mT, weights.mT @ upstream


class _ByHand(Dense):
    """Multiplies values by a product of its own."""

    product: Any = _Product

    def read(self, q: Tensor, k: Tensor, v: Tensor, context: Context) -> Tensor:
        logits = self.logits(q, k) + self.bias(context, q, k)
        permitted = self.permitted(logits, context.causal, context.key_mask_BM)
        out: Tensor = self.product.apply(self.weights(logits, permitted), v)
        return out


class AllOrNothing(_ByHand, law="frozen"):
    """Its backward pass takes it that where weights need no gradient nothing does: frozen queries
    and keys freeze the values."""

    class product(_Product):  # noqa: N801
        @staticmethod
        def backward(ctx: Any, upstream: Tensor) -> Any:  # type: ignore[override]
            if not ctx.needs_input_grad[0]:
                return None, None
            return _Product.backward(ctx, upstream)


class GradientsByPlace(_ByHand, law="frozen"):
    """Its backward pass returns those that are asked for, one after the other: where the first is
    not, the second takes its place."""

    class product(_Product):  # noqa: N801
        @staticmethod
        def backward(ctx: Any, upstream: Tensor) -> Any:  # type: ignore[override]
            both = _Product.backward(ctx, upstream)
            asked = [
                x for x, is_needed in zip(both, ctx.needs_input_grad, strict=True) if is_needed
            ]
            return *asked, *[None] * (2 - len(asked))


class NoGraphForFrozenInputs(Dense, law="frozen", stranger=""):
    """A first layer, whose input needs no gradient, is taken for one that is not trained."""

    def project(self, x: Tensor, context: Context, source: Tensor | None, state: Any) -> Heads:
        with torch.set_grad_enabled(torch.is_grad_enabled() and x.requires_grad):
            return super().project(x, context, source, state)


class FreesWhatItKept(_ByHand, law="second_backward"):
    """Its backward pass lets go of what it kept, to save memory."""

    class product(_Product):  # noqa: N801
        @staticmethod
        def forward(ctx: Any, weights: Tensor, v: Tensor) -> Tensor:
            ctx.kept = (weights.detach(), v.detach())
            return weights @ v

        @staticmethod
        def backward(ctx: Any, upstream: Tensor) -> Any:  # type: ignore[override]
            weights, v = ctx.kept
            ctx.kept = ()
            return upstream @ v.mT, weights.mT @ upstream


class ScoresInPlace(_ByHand, law="second_backward"):
    """Its backward pass turns the weights that it kept into their gradient, where they lie."""

    class product(_Product):  # noqa: N801
        @staticmethod
        def backward(ctx: Any, upstream: Tensor) -> Any:  # type: ignore[override]
            weights, v = ctx.saved_tensors
            dv = weights.mT @ upstream
            return torch.matmul(upstream, v.mT, out=weights.detach()), dv


class KeptOnTheLayer(Dense, law="second_backward"):
    """Weights for the backward pass are an attribute of the layer: a second call takes them."""

    def read(self, q: Tensor, k: Tensor, v: Tensor, context: Context) -> Tensor:
        logits = self.logits(q, k) + self.bias(context, q, k)
        permitted = self.permitted(logits, context.causal, context.key_mask_BM)
        self.kept = weights = self.weights(logits, permitted)
        out: Tensor = _FromTheLayer.apply(weights, v, self)  # type: ignore[no-untyped-call]
        return out


class _FromTheLayer(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weights: Tensor, v: Tensor, layer: KeptOnTheLayer) -> Tensor:
        ctx.layer = layer
        ctx.save_for_backward(v)
        return weights @ v

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> Any:  # type: ignore[override]
        (v,) = ctx.saved_tensors
        return upstream @ v.mT, ctx.layer.kept.detach().mT @ upstream, None


class OnceByTorch(_ByHand, law="double_backward"):
    """Torch's decorator refuses a second derivative in a pass to all leaves alone: asked for
    chosen ones, the graph ends at the first derivative."""

    class product(_Product):  # noqa: N801
        backward = staticmethod(once_differentiable(_Product.backward))


class WeightsKeptAsNumbers(Dense, law="double_backward"):
    """Keeps the softmax that its forward pass made, which has no graph: to a second derivative
    weights are constants."""

    def weights(self, logits: Tensor, permitted: Tensor) -> Tensor:
        filled = logits.masked_fill(~permitted, -1e30)
        weights: Tensor = _Softmax.apply(filled)  # type: ignore[no-untyped-call]
        return weights * permitted


class _Softmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor) -> Tensor:
        ctx.weights = logits.softmax(-1)
        return ctx.weights.clone()

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> Any:  # type: ignore[override]
        weights = ctx.weights
        return weights * (upstream - (upstream * weights).sum(-1, keepdim=True))


class RateNotPassedOn(Dense, law="dropout", stranger=""):
    """Builds its dropout before it knows of the rate, as a module of rate 0."""

    def prepare(self) -> None:
        self.drop = torch.nn.Dropout(getattr(self.config, "dropout", 0.0))

    def dropped(self, weights: Tensor) -> Tensor:
        found: Tensor = self.drop(weights)
        return found


class DropsTheSame(Dense, law="dropout", stranger=""):
    """Draws from a generator that every call seeds anew: the same weights in each step."""

    def dropped(self, weights: Tensor) -> Tensor:
        rate = self.dims.dropout if self.training else 0.0
        generator = torch.Generator().manual_seed(self.seed)
        kept = torch.rand(weights.shape, generator=generator) >= rate
        return weights * kept / (1 - rate)


class NotDividedByWhatIsKept(Dense, law="dropout_mean", stranger=""):
    """Weights are masked out, and those kept are left as they are."""

    def dropped(self, weights: Tensor) -> Tensor:
        if not (self.training and self.dims.dropout):
            return weights
        return weights.masked_fill(torch.rand_like(weights) < self.dims.dropout, 0.0)


class LogitsDropped(Dense, law="dropout_mean", stranger=""):
    """Dropout stands one line too early, before the softmax."""

    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        return F.dropout(super().logits(q, k), self.dims.dropout, self.training)

    def dropped(self, weights: Tensor) -> Tensor:
        return weights


class DrawnAgainBackwards(Dense, law="dropout_gradient", stranger=""):
    """Its backward pass draws again what was dropped, and the generator has gone on."""

    def dropped(self, weights: Tensor) -> Tensor:
        rate = self.dims.dropout if self.training else 0.0
        found: Tensor = _DrawnTwice.apply(weights, rate)  # type: ignore[no-untyped-call]
        return found


class _DrawnTwice(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weights: Tensor, rate: float) -> Tensor:
        ctx.rate = rate
        return F.dropout(weights, rate, rate > 0)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> Any:  # type: ignore[override]
        return F.dropout(upstream, ctx.rate, ctx.rate > 0), None


class ValuesOfAllWeights(Dense, law="dropout_gradient", stranger=""):
    """Its backward pass makes the weights again and forgets that some were dropped: the values'
    gradient comes from all."""

    def read(self, q: Tensor, k: Tensor, v: Tensor, context: Context) -> Tensor:
        logits = self.logits(q, k) + self.bias(context, q, k)
        permitted = self.permitted(logits, context.causal, context.key_mask_BM)
        weights = self.weights(logits, permitted)
        dropped = self.dropped(weights)
        return dropped @ v.detach() + weights @ v - weights @ v.detach()


class LoudestDroppedLess(Dense, law="dropout_leaks", stranger=""):
    """Keys are dropped by their share of the largest norm, wherever that stands: later positions,
    padding and other examples are felt."""

    def read(self, q: Tensor, k: Tensor, v: Tensor, context: Context) -> Tensor:
        self.share = v.detach().norm(dim=-1) / v.detach().norm(dim=-1).amax().clamp(min=1e-30)
        return super().read(q, k, v, context)

    def dropped(self, weights: Tensor) -> Tensor:
        if not self.training:
            return weights
        rate = (self.dims.dropout * self.share)[:, :, None]
        return weights * (torch.rand_like(weights) >= rate) / (1 - rate)


class DropsOverAllKeys(Dense, law="dropout_leaks", stranger=""):
    """In training weights are dropped before they are masked and divided by what is left: by a sum
    over all keys, hidden ones included."""

    card = card(softmax="never")

    def weights(self, logits: Tensor, permitted: Tensor) -> Tensor:
        weights = super().weights(logits, permitted)
        if not (self.training and self.dims.dropout):
            return weights
        everything = torch.ones_like(permitted)
        found = F.dropout(super().weights(logits, everything), self.dims.dropout) * permitted
        return found + weights - weights.detach()

    def dropped(self, weights: Tensor) -> Tensor:
        return weights
