"""Local mixing: every position sees its neighbours, and no other.

B batch   N positions   D model width   T taps   S positions that decoding remembers
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attention_impls.contract import Context, Dims, MechanismConfig, Mixer
from lra.core.cards import AttentionCard, Capabilities

TAPS = 9
"""Positions that one layer's output depends on: 9 in a row, or 3 x 3 pixels."""


class LocalState(NamedTuple):
    """The last inputs, from which the next outputs start."""

    recent_BSD: Tensor
    """Zero before the first position."""
    seen_B: Tensor
    """int64, on the CPU: positions consumed, padding included."""


class Local(Mixer):
    """W GELU(convolution of width 9 over all channels), in a picture of 3 x 3 pixels.

    The control of every task: a model that looks at places side by side, pools them, and never
    compares two that are far apart. A task on which it does well shows nothing about attention.

    A picture is read row by row, so that pixels above and below are a row's width away in the
    sequence; at its edges a row goes on in the next, as it does there. Causal, the same taps end
    at the position itself. Beyond both ends there are zeros. Padding is skipped wherever it stands,
    as if it were not there.

    It claims biases and rotary positions because it runs under any scheme of the model around it;
    without logits they change nothing.
    """

    card = AttentionCard(
        title="Local convolution",
        paper="Gehring et al., Convolutional Sequence to Sequence Learning, ICML 2017, "
        "arXiv:1705.03122, as a control: one convolution of width 9 in place of attention",
        year=2017,
        time="O(n d^2)",
        memory="O(n d)",
        linear=False,
        without_effect=("position", "special_BN"),
        capabilities=Capabilities(
            bidirectional=True,
            causal="strict",
            padding="content",
            decode="exact",
            bias=True,
            rotary=True,
        ),
    )

    def __init__(
        self,
        dims: Dims,
        config: MechanismConfig | None = None,
        *,
        layer_index: int = 0,
        shared: nn.Module | None = None,
        seed: int = 0,
    ) -> None:
        """Lay the taps out."""
        super().__init__(dims, config, layer_index=layer_index, shared=shared, seed=seed)
        self._offsets = _offsets(dims.picture_width)
        self.weigh = nn.Linear(TAPS * dims.width, dims.width, bias=dims.projection_biases)
        # Neighbours have to be compared before they are added up: without a function that bends in
        # between, a model learns no shape in the steps that attention takes.
        self.output = nn.Linear(dims.width, dims.width, bias=dims.projection_biases)
        for projection in (self.weigh, self.output):
            nn.init.xavier_uniform_(projection.weight)
            if dims.projection_biases:
                nn.init.zeros_(projection.bias)

    def mix(
        self, x_BND: Tensor, context: Context, state: LocalState | None = None
    ) -> tuple[Tensor, LocalState | None]:
        """Return what each position makes of its neighbours, and the advanced state."""
        n, mask_BN = x_BND.shape[1], context.query_mask_BN
        if mask_BN is not None:
            # Real positions first; the zeros behind them are those beyond the end.
            order_BN = torch.argsort((~mask_BN).to(torch.int8), dim=1, stable=True)
            x_BND = x_BND.gather(1, order_BN.unsqueeze(-1).expand_as(x_BND))
        ahead = 0 if context.causal else self._offsets[-1]
        before = self._offsets[-1] - self._offsets[0] - ahead
        if state is None:
            seen_BMD = F.pad(x_BND, (0, 0, before, ahead))
        else:
            seen_BMD = torch.cat([state.recent_BSD, x_BND], dim=1)
            state = self._advance(state, seen_BMD, mask_BN, n)
        taps = [seen_BMD[:, o - self._offsets[0] :][:, :n] for o in self._offsets]
        y_BND = self.output(F.gelu(self.weigh(torch.cat(taps, dim=-1))))
        if mask_BN is not None:
            y_BND = y_BND.gather(1, order_BN.argsort(dim=1).unsqueeze(-1).expand_as(y_BND))
        return y_BND, state

    def _advance(
        self, state: LocalState, seen_BMD: Tensor, mask_BN: Tensor | None, n: int
    ) -> LocalState:
        """Return the state after n more positions; of padded rows the last real ones."""
        kept = state.recent_BSD.shape[1]
        if mask_BN is None:
            recent_BSD = seen_BMD[:, n:]
        else:
            places_BS = mask_BN.sum(1, keepdim=True) + torch.arange(kept, device=mask_BN.device)
            index_BSD = places_BS.unsqueeze(-1).expand(-1, -1, seen_BMD.shape[-1])
            recent_BSD = seen_BMD.gather(1, index_BSD)
        return LocalState(recent_BSD, state.seen_B + n)

    def oracle(self, x_BND: Tensor, context: Context) -> Tensor:
        """Return the layer with its convolution as a sum over the taps, each of them a matrix that
        shifts the real positions."""
        weight_DTD = torch.unflatten(self.weigh.weight.double(), 1, (TAPS, -1))
        sum_BND = torch.zeros_like(x_BND, dtype=torch.float64)
        shift = self._offsets[-1] if context.causal else 0
        for example, u_ND in enumerate(x_BND.double()):
            mask_BN = context.query_mask_BN
            real_N = torch.ones(len(u_ND), dtype=torch.bool, device=u_ND.device)
            real_N = real_N if mask_BN is None else mask_BN[example]
            u_RD = u_ND[real_N]
            row_R = torch.arange(len(u_RD), device=u_ND.device)
            for tap, offset in enumerate(self._offsets):
                moved_RR = (row_R - row_R.unsqueeze(1) == offset - shift).double()
                sum_BND[example, real_N] += moved_RR @ u_RD @ weight_DTD[:, tap].T
        sum_BND = sum_BND + (0 if self.weigh.bias is None else self.weigh.bias.double())
        bent_BND = 0.5 * sum_BND * (1 + torch.erf(sum_BND / math.sqrt(2)))
        bias = 0 if self.output.bias is None else self.output.bias.double()
        return bent_BND @ self.output.weight.double().T + bias

    def operations(self, n: int, *, causal: bool = False) -> int:
        """One product of all taps and one of the output, in either direction."""
        return 2 * n * (TAPS + 1) * self.dims.width * self.dims.width

    def empty_state(
        self, batch: int, *, length: int, device: torch.device, dtype: torch.dtype
    ) -> LocalState:
        """Return zeros for as many positions as the taps reach back, whatever `length`."""
        size = (batch, self._offsets[-1] - self._offsets[0], self.dims.width)
        recent_BSD = torch.zeros(size, device=device, dtype=dtype)
        return LocalState(recent_BSD, torch.zeros(batch, dtype=torch.int64))


def _offsets(picture_width: int | None) -> list[int]:
    """Where each tap lies in the sequence, from the position itself."""
    if picture_width is None:
        return [tap - TAPS // 2 for tap in range(TAPS)]
    reach = math.isqrt(TAPS) // 2
    steps = range(-reach, reach + 1)
    return sorted(down * picture_width + right for down in steps for right in steps)
