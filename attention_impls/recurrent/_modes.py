"""Diagonal linear recurrences: powers by two small tables, and convolution by FFT.

B batch   N positions   D channels   S modes   U = ceil(sqrt(N)): any l < N is U i + j, with i and
j below U   P length of the Fourier transform

Mode s at lag l weighs w_s^l = w_s^(U i) w_s^j. So sums over modes, for all lags at once, are one
product of matrices for each channel, and only 2 U powers of each mode are ever taken.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor


class Modes:
    """Modes e^(step lambda) of all channels, ready for N positions."""

    def __init__(
        self, log_step_D: Tensor, log_decay_DS: Tensor, frequency_DS: Tensor, n: int
    ) -> None:
        step_D1 = log_step_D.exp().unsqueeze(-1)
        rates_DS = torch.complex(-log_decay_DS.exp(), frequency_DS)
        self.n, self.side = n, math.isqrt(n - 1) + 1
        self._decay_DS, self._turn_DS = step_D1 * rates_DS.real, step_D1 * frequency_DS
        self.one_DS = self._powers(torch.ones(1, device=step_D1.device))[..., 0]
        self.gain_DS = _minus_one(self._decay_DS, self._turn_DS) / rates_DS
        """Gain of a mode by an input held for one step: (e^(step lambda) - 1) / lambda."""
        near_U = torch.arange(self.side, device=step_D1.device)
        self.near_DSU, self.far_DSU = self._powers(near_U), self._powers(near_U * self.side)

    def _powers(self, lags_U: Tensor) -> Tensor:
        """Return w^l, (D, S, U)."""
        size_DSU = torch.exp(self._decay_DS.unsqueeze(-1) * lags_U)
        # Float32 would lose the angle of fast modes at long lags: whole turns are dropped first.
        angle_DSU = torch.remainder(self._turn_DS.double().unsqueeze(-1) * lags_U, 2 * math.pi)
        return torch.polar(size_DSU, angle_DSU.to(size_DSU.dtype))

    def kernels(self, taps_RDS: Tensor) -> Tensor:
        """Return 2 Re sum_s taps_s w_s^l for l below N, (R, D, N), for R sets of taps."""
        far_RDSU = taps_RDS.unsqueeze(-1) * self.far_DSU
        left = torch.cat([far_RDSU.real, -far_RDSU.imag], dim=2)
        right = torch.cat([self.near_DSU.real, self.near_DSU.imag], dim=1)
        sums_RDUU = left.mT @ right
        return 2 * sums_RDUU.flatten(2)[..., : self.n]

    def advance(
        self, u_BDN: Tensor, start_BDS: Tensor, taps_DS: Tensor, real_B: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return outputs (B, D, N) from a state before them, and the state after the first `real_B`
        inputs, behind which all are zero."""
        if self.n == 1:
            last_BDS = self.one_DS * start_BDS + u_BDN
            y_BD1 = 2 * (taps_DS * last_BDS).real.sum(-1, keepdim=True)
            return y_BD1, torch.where(real_B[:, None, None] > 0, last_BDS, start_BDS)
        y_BDN = convolve(u_BDN, self.kernels(taps_DS.unsqueeze(0))[0], None)
        y_BDN = y_BDN + self.kernels(taps_DS * self.one_DS * start_BDS)
        # The last real input has lag 0: from there back, then zeros.
        place_BL = real_B[:, None] - 1 - torch.arange(self.side**2, device=u_BDN.device)
        index_BDL = place_BL.clamp(min=0)[:, None].expand(-1, u_BDN.shape[1], -1)
        lagged_BDL = u_BDN.gather(2, index_BDL).masked_fill(place_BL[:, None] < 0, 0.0)
        lagged_BDUU = lagged_BDL.reshape(*u_BDN.shape[:2], self.side, self.side)
        near_BDUS = torch.complex(
            lagged_BDUU @ self.near_DSU.real.mT, lagged_BDUU @ self.near_DSU.imag.mT
        )
        added_BDS = (near_BDUS * self.far_DSU.mT).sum(2)
        whole_BDS = self._powers(real_B).movedim(-1, 0)
        return y_BDN, whole_BDS * start_BDS + added_BDS


def _minus_one(decay: Tensor, turn: Tensor) -> Tensor:
    """Return e^(decay + i turn) - 1 without cancellation where both are small."""
    half = torch.sin(turn / 2)
    real = torch.expm1(decay) * torch.cos(turn) - 2 * half * half
    return torch.complex(real, torch.exp(decay) * torch.sin(turn))


def convolve(u_BDN: Tensor, after_DN: Tensor, before_DN: Tensor | None) -> Tensor:
    """Return sum_l after_l u_(t - l) + before_l u_(t + 1 + l), (B, D, N)."""
    n = u_BDN.shape[-1]
    length = transform_length(2 * n - 1)
    kernel_DP = after_DN
    if before_DN is not None:
        gap = after_DN.new_zeros(len(after_DN), length - 2 * n + 1)
        # Lags before the beginning wrap round to the end.
        kernel_DP = torch.cat([after_DN, gap, before_DN[:, : n - 1].flip(-1)], dim=-1)
    product = torch.fft.rfft(u_BDN, n=length) * torch.fft.rfft(kernel_DP, n=length)
    y_BDP: Tensor = torch.fft.irfft(product, n=length)
    return y_BDP[..., :n]


def transform_length(n: int) -> int:
    """Return the least length from n on that is 1, 3, 5, 9 or 15 times a power of two."""
    return min(odd << ((n - 1) // odd).bit_length() for odd in (1, 3, 5, 9, 15))
