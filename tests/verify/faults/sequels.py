"""Faults of a layer that is asked more than once: what one call leaves behind for the next."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from attention_impls.contract import Context, seen
from verify.faults.dense import Dense, card


class MaskKeptByShape(Dense, law="sequel"):
    """The mask of permitted pairs is built once for each shape, padding of that call included."""

    def prepare(self) -> None:
        self.masks: dict[tuple[bool, torch.Size], Tensor] = {}

    def permitted(self, logits: Tensor, causal: bool, mask: Tensor | None) -> Tensor:
        key = (causal, logits.shape)
        if key not in self.masks:
            self.masks[key] = super().permitted(logits, causal, mask)
        return self.masks[key]


class LongestYet(Dense, law="sequel"):
    """Logits are scaled by the logarithm of the longest length met so far."""

    card = card(softmax="never")

    def prepare(self) -> None:
        self.longest = 1

    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        self.longest = max(self.longest, k.shape[2])
        return super().logits(q, k) * (1 + torch.tensor(float(self.longest)).log())


class WeightsFoldedOnce(Dense, law="sequel"):
    """In evaluation a gain is folded into a constant at the first call; a later step of the
    optimiser does not reach it."""

    card = card(softmax="never")
    folded: Tensor | None = None

    def prepare(self) -> None:
        self.gain = torch.nn.Parameter(torch.ones(self.dims.head_width))

    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        if torch.is_grad_enabled():
            return super().logits(q * self.gain, k)
        if self.folded is None:
            self.folded = self.gain.detach().clone()
        return super().logits(q * self.folded.to(q), k)


class WorkspaceReturned(Dense, law="sequel", stranger=""):
    """Without gradients its output is written to an array that is kept for the next call of that
    shape, and returned itself by a layer whose model adds nothing to it."""

    def prepare(self) -> None:
        self.space: dict[torch.Size, Tensor] = {}

    def forward(self, x_BND: Tensor, *args: Any, **kwargs: Any) -> Any:
        out = super().forward(x_BND, *args, **kwargs)
        if torch.is_grad_enabled() or x_BND.dtype != torch.float64:
            return out
        space = self.space.setdefault(x_BND.shape[1:], torch.empty(64, *x_BND.shape[1:]).double())
        space[: len(x_BND)] = out.y_BND
        return out._replace(y_BND=space[: len(x_BND)])


class QueriesScaledInPlace(Dense, law="side_effects"):
    """Without gradients queries are scaled where they lie, to save an array."""

    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        if torch.is_grad_enabled():
            return super().logits(q, k)
        return q.mul_(q.shape[-1] ** -0.5) @ k.mT


class _Summed(torch.autograd.Function):
    """Weights times values; the gradient that comes in is used up."""

    @staticmethod
    def forward(ctx: Any, weights: Tensor, v: Tensor) -> Tensor:
        ctx.save_for_backward(weights, v)
        return 2 * (weights @ v)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        weights, v = ctx.saved_tensors
        upstream = upstream.mul_(2)
        return upstream @ v.mT, weights.mT @ upstream


class GradientScaledInPlace(Dense, law="side_effects"):
    """Its backward pass scales the gradient that comes in where it lies, which others read too."""

    def read(self, q: Tensor, k: Tensor, v: Tensor, context: Context) -> Tensor:
        logits = self.logits(q, k) + self.bias(context, q, k)
        permitted = self.permitted(logits, context.causal, context.key_mask_BM)
        weights = self.weights(logits, permitted) / 2
        out: Tensor = _Summed.apply(weights, v)  # type: ignore[no-untyped-call]
        return out


class KernelsTurnedOff(Dense, law="side_effects"):
    """A kernel that gave trouble is turned off in construction, for all layers of the process."""

    def prepare(self) -> None:
        torch.backends.cuda.enable_mem_efficient_sdp(False)


class MaskFilledIn(Dense, law="side_effects"):
    """Rows without a real key are given one, in the caller's own mask."""

    def permitted(self, logits: Tensor, causal: bool, mask: Tensor | None) -> Tensor:
        if mask is not None:
            mask[:, 0] |= ~mask[:, 0]
        return super().permitted(logits, causal, mask)


class ScoreInAClosure(Dense, law="copies"):
    """The score is chosen in construction, as a function that holds the layer's own parameter: a
    copy goes on with the original's."""

    card = card(softmax="never")

    def prepare(self) -> None:
        self.gain = gain = torch.nn.Parameter(torch.ones(self.dims.head_width))
        self.score = lambda q, k: (q * gain.to(q)) @ k.mT

    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        scored: Tensor = self.score(q, k)
        return scored


class TableMadeWhenCalled(Dense, law="copies"):
    """A table is registered in the first call and made longer in later ones, so that the state dict
    depends on what was asked."""

    card = card(softmax="never")

    def prepare(self) -> None:
        self.register_buffer("table", None)

    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        if self.table is None or len(self.table) < k.shape[2]:
            self.table = torch.linspace(0, 1, k.shape[2])
        return super().logits(q, k) + self.table[: k.shape[2]].to(q)


class LoadedByReference(Dense, law="copies"):
    """Loading takes the tensor of the state dict itself: two layers loaded from one share it."""

    card = card(softmax="never")

    def prepare(self) -> None:
        self.gain = torch.nn.Parameter(torch.ones(self.dims.head_width))

    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        return super().logits(q * self.gain.to(q), k)

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any) -> None:
        super()._load_from_state_dict(state_dict, prefix, *args)  # type: ignore[no-untyped-call]
        self.gain.data = state_dict[f"{prefix}gain"]


class CacheOnTheLayer(Dense, law="streams", stranger=""):
    """Remembered keys are an attribute of the layer: a second stream goes on with the first's."""

    past: Any = None

    def remember(self, state: Any, k: Tensor, v: Tensor, mask: Tensor | None) -> Any:
        if seen(state):
            state = self.past._replace(seen_B=state.seen_B)
        found = super().remember(state, k, v, mask)
        self.past = found[0]
        return found


class LastMaskOnTheLayer(Dense, law="streams", stranger=""):
    """Steps that come without a mask take that of the layer's last call."""

    last: Tensor | None = None

    def permitted(self, logits: Tensor, causal: bool, mask: Tensor | None) -> Tensor:
        n, m = logits.shape[-2:]
        if n == m:
            self.last = mask
        elif self.last is not None and self.last.shape[0] == len(logits):
            length = min(m, self.last.shape[1])
            mask = torch.ones(len(logits), m, dtype=torch.bool) if mask is None else mask.clone()
            mask[:, :length] &= self.last[:, :length]
        return super().permitted(logits, causal, mask)


class Turned(NamedTuple):
    """Decode state with positions first, as a recurrent layer returns its outputs."""

    k_TBHK: Tensor
    v_TBHV: Tensor
    mask_TB: Tensor
    padded_B: Tensor
    seen_B: Tensor


class PositionsFirst(Dense, law="beams", stranger=""):
    """Its state has positions first: chosen along the first dimension, it gives other positions."""

    def empty_state(self, *args: Any, **kwargs: Any) -> Any:
        k, v, mask, *rest = super().empty_state(*args, **kwargs)
        return Turned(k.movedim(2, 0), v.movedim(2, 0), mask.mT, *rest)

    def remember(self, state: Any, k: Tensor, v: Tensor, mask: Tensor | None) -> Any:
        plain = super().empty_state(1, length=1, device=k.device, dtype=k.dtype)
        k_TBHK, v_TBHV, mask_TB, *rest = state
        own = type(plain)(k_TBHK.movedim(0, 2), v_TBHV.movedim(0, 2), mask_TB.mT, *rest)
        own, *read = super().remember(own, k, v, mask)
        return state._replace(padded_B=own.padded_B, seen_B=own.seen_B), *read


class ReordersInPlace(Dense, law="beams", stranger=""):
    """Chosen rows are written over those of the state that they were chosen from."""

    def select_state(self, state: Any, index: Tensor) -> Any:
        chosen = super().select_state(state, index)
        for old, new in zip(state, chosen, strict=True):
            if isinstance(old, Tensor) and old.shape == new.shape:
                old.copy_(new)
        return chosen


class GainsByRow(Dense, law="beams", stranger=""):
    """A figure that a prompt sets for each example is kept on the layer by row: a reordered state
    meets another row's."""

    card = card(softmax="never")
    gains: Tensor | None = None

    def remember(self, state: Any, k: Tensor, v: Tensor, mask: Tensor | None) -> Any:
        if not seen(state):
            self.gains = k[:, :1, :1, :1].sigmoid()
        return super().remember(state, k, v, mask)

    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, context: Context, state: Any = None
    ) -> tuple[Tensor, Any]:
        out, state = super().attend(q, k, v, context, state)
        if state is not None and self.gains is not None:
            out = (
                out
                * self.gains.expand(-1, out.shape[1], -1, -1)[: len(out)].repeat(
                    -(-len(out) // len(self.gains)), 1, 1, 1
                )[: len(out)]
            )
        return out, state
