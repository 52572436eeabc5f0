"""Feature maps: phi with weight(q, k) = phi(q) . phi(k) > 0, and their gradients.

    G heads of a tile   N positions   K head width   R features

A map makes features of tiles of heads and rows that fit a cache. A row of query features may carry
any positive factor, which cancels in the normalised output. A row of key features may be divided by
exp(log scale), which the map then returns; the attention puts it back, exactly. Both factors are
constants to the gradient, because nothing depends on them.

In half precision G stands for two dimensions, batch and heads, and there are no tiles. Arguments of
exponentials and log scales are in float32, features in bfloat16.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Self

import torch
from torch import Tensor

from attention_impls._write import write
from attention_impls.kernel._products import product


class FeatureMap(ABC):
    """Non-negative features of queries and keys."""

    @abstractmethod
    def width(self, head_width: int) -> int:
        """Return R."""

    def prepare(self, x_BHNK: Tensor) -> Tensor:
        """Return what stands for the queries or keys in all methods below, and for the gradient."""
        return x_BHNK

    def tile(self, heads: slice, repeats: int) -> FeatureMap:
        """Return the map of these heads of `repeats` batch rows, flattened into G."""
        return self

    @abstractmethod
    def queries(self, q_GNK: Tensor) -> Tensor:
        """Return (G, N, R), each row up to a positive factor."""

    @abstractmethod
    def keys(self, k_GNK: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return (G, N, R), and the log scale (G, N) of its rows if they were divided by it."""

    @abstractmethod
    def queries_gradient(
        self, q_GNK: Tensor, phi_GNR: Tensor, upstream_GNR: Tensor, out_GNK: Tensor
    ) -> None:
        """Write the gradient of q into `out`, given that of its features, which it overwrites."""

    def keys_gradient(
        self, k_GNK: Tensor, phi_GNR: Tensor, upstream_GNR: Tensor, out_GNK: Tensor
    ) -> None:
        """Write the gradient of k into `out`, given that of its features, which it overwrites."""
        self.queries_gradient(k_GNK, phi_GNR, upstream_GNR, out_GNK)


class EluFeatures(FeatureMap):
    """elu(x) + 1: x + 1 where x >= 0, else exp(x). They are kept in place of x."""

    def width(self, head_width: int) -> int:
        """Return R = K."""
        return head_width

    def prepare(self, x_BHNK: Tensor) -> Tensor:
        """Return the features, as exp(min(x, 0)) + max(x, 0).

        One of the terms is 1 or 0 exactly, so small features keep the digits that elu(x) + 1 loses.
        """
        if torch.compiler.is_compiling():
            # The exponential is kept for its gradient, and at 0 only one of the terms has one.
            return x_BHNK.clamp(max=0.0).exp() + x_BHNK.relu()
        if x_BHNK.dtype == torch.bfloat16:  # laid out for products, in the same pass
            low = torch.clamp(x_BHNK, max=0.0, out=x_BHNK.new_empty(x_BHNK.shape))
        else:
            low = x_BHNK.clamp(max=0.0)
        return low.exp_().add_(x_BHNK.clamp(min=0.0))

    def queries(self, q_GNK: Tensor) -> Tensor:
        """Return them."""
        return q_GNK

    def keys(self, k_GNK: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return them; they have no scale."""
        return k_GNK, None

    def queries_gradient(
        self, q_GNK: Tensor, phi_GNR: Tensor, upstream_GNR: Tensor, out_GNK: Tensor
    ) -> None:
        """The slope is 1 where phi >= 1, else phi itself. A masked key has phi = 0."""
        write(out_GNK, torch.mul, upstream_GNR, phi_GNR.clamp(max=1.0))


class _Projected(FeatureMap):
    """Features of omega . x, with x scaled by K ** -1/4 so that x . y is the softmax logit."""

    def __init__(self, omega_HRK: Tensor, scale: float = 1.0) -> None:
        """Take draws that already hold that scale, but for a factor that they do not."""
        self.omega = omega_HRK
        self.scale = scale

    @classmethod
    def of(cls, omega_HRK: Tensor, dtype: torch.dtype) -> Self:
        """Return the map for standard draws. In half precision they stay as they are: rounded
        once more, they would be others than the layer's."""
        scale = omega_HRK.shape[-1] ** -0.25
        if dtype == torch.bfloat16:
            return cls(omega_HRK.to(dtype), scale)
        return cls(omega_HRK.to(dtype) * scale)

    def width(self, head_width: int) -> int:
        """Return R, the number of draws."""
        return self.omega.shape[1]

    def tile(self, heads: slice, repeats: int) -> FeatureMap:
        """Repeat the heads' draws for each batch row."""
        omega = self.omega[heads]
        return type(self)(omega if repeats == 1 else omega.repeat(repeats, 1, 1), self.scale)

    def _project(self, x_GNK: Tensor) -> Tensor:
        if x_GNK.dtype == torch.bfloat16:
            return torch.matmul(x_GNK, self.omega.mT)
        return torch.bmm(x_GNK, self.omega.mT)

    def _back(self, upstream_GNR: Tensor, out_GNK: Tensor) -> Tensor:
        """Write the gradient of x into `out`, given that of omega . x."""
        if out_GNK.dtype == torch.bfloat16:
            return out_GNK.copy_(torch.matmul(upstream_GNR, self.omega).mul_(self.scale))
        return write(out_GNK, torch.bmm, upstream_GNR, self.omega)


class ReluFeatures(_Projected):
    """max(omega . x, 0) + 0.001: a generalised kernel, with a floor so that no row is empty."""

    FLOOR = 1e-3

    def queries(self, q_GNK: Tensor) -> Tensor:
        """Return the features."""
        phi_GNR = self._project(q_GNK).relu_()
        if phi_GNR.dtype == torch.bfloat16:
            return torch.add(phi_GNR.new_full((1,), self.FLOOR), phi_GNR, alpha=self.scale)
        # Traced, they are kept for their own gradient, which is 0 at 0.
        return phi_GNR + self.FLOOR if torch.compiler.is_compiling() else phi_GNR.add_(self.FLOOR)

    def keys(self, k_GNK: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return the same features; they have no scale."""
        return self.queries(k_GNK), None

    def queries_gradient(
        self, q_GNK: Tensor, phi_GNR: Tensor, upstream_GNR: Tensor, out_GNK: Tensor
    ) -> None:
        """Pass the gradient where the feature stands above its floor."""
        # A compiler may leave features unrounded, and rounds the floor.
        floor = self.FLOOR * (1.01 if phi_GNR.dtype == torch.bfloat16 else 1.0)
        self._back(upstream_GNR.mul_(phi_GNR > floor), out_GNK)


class SoftmaxFeatures(_Projected):
    """exp(omega . x - |x|^2 / 2): positive features, unbiased for exp(x . y).

    A query row is divided by its sum, which also cancels its |x|^2 / 2. A key row is divided by
    its own largest feature, whose logarithm is returned: features of a key of huge norm lie far
    below the smallest float, and still share out all weight where a query sees no other key.
    """

    def queries(self, q_GNK: Tensor) -> Tensor:
        """Return features that sum to 1 in each row: the fused softmax is the fastest exp."""
        if q_GNK.dtype == torch.bfloat16:
            return self._shifted(q_GNK)[0]
        return self._project(q_GNK).softmax(-1)

    def keys(self, k_GNK: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return features whose largest in each row is 1, and the logarithm of what it was."""
        if k_GNK.dtype == torch.bfloat16:
            phi_GNR, largest_GN1 = self._shifted(k_GNK)
            return phi_GNR, largest_GN1.squeeze(-1) - half_norm(k_GNK)
        phi_GNR = self._project(k_GNK)
        largest_GN1 = phi_GNR.detach().amax(-1, keepdim=True)
        half_norm_GN = k_GNK.square().sum(-1).mul_(0.5 / math.sqrt(k_GNK.shape[-1]))
        return phi_GNR.sub_(largest_GN1).exp_(), largest_GN1.squeeze(-1) - half_norm_GN

    def _shifted(self, x_BHNK: Tensor) -> tuple[Tensor, Tensor]:
        """Return features whose largest in each row is 1, in bfloat16, and what its logarithm was.

        The difference to the largest is rounded, not the argument: its error is small where the
        feature is large.
        """
        batch, heads, n = x_BHNK.shape[:3]
        omega_GKR = self.omega.repeat(batch, 1, 1).mT
        along_BHNR = product(x_BHNK.flatten(0, 1), omega_GKR).view(batch, heads, n, -1)
        largest_BHN1 = along_BHNR.amax(-1, keepdim=True)
        phi_BHNR = x_BHNK.new_empty(along_BHNR.shape)
        write(phi_BHNR, torch.sub, along_BHNR, largest_BHN1).mul_(self.scale).exp_()
        return phi_BHNR, largest_BHN1.mul_(self.scale)

    def queries_gradient(
        self, q_GNK: Tensor, phi_GNR: Tensor, upstream_GNR: Tensor, out_GNK: Tensor
    ) -> None:
        """The slope of exp is exp."""
        self._back(upstream_GNR.mul_(phi_GNR), out_GNK)

    def keys_gradient(
        self, k_GNK: Tensor, phi_GNR: Tensor, upstream_GNR: Tensor, out_GNK: Tensor
    ) -> None:
        """As for queries, and the share of |x|^2 / 2."""
        slope_GNR = upstream_GNR.mul_(phi_GNR)
        norm_GN1 = slope_GNR.sum(-1, keepdim=True).mul_(-1.0 / math.sqrt(k_GNK.shape[-1]))
        self._back(slope_GNR, out_GNK).addcmul_(k_GNK, norm_GN1)


def half_norm(x_BHNK: Tensor) -> Tensor:
    """Return |x|^2 / 2 of x with its scale K ** -1/4, in float32 and one pass over x."""
    norm_BHN = torch.linalg.vector_norm(x_BHNK, dim=-1, dtype=torch.float32)
    half_BHN: Tensor = norm_BHN.square_().mul_(0.5 / math.sqrt(x_BHNK.shape[-1]))
    return half_BHN
