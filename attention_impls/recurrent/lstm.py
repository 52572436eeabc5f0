"""LSTM: long short-term memory, one recurrence from each end.

B batch   N positions   D model width   W width of one recurrence   R real positions
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence

from attention_impls.contract import Context, Dims, MechanismConfig, Mixer
from lra.core.cards import AttentionCard, Capabilities
from lra.core.errors import UsageError


class LstmConfig(MechanismConfig, frozen=True):
    """Hyper-parameters of the LSTM."""

    forget_bias: float = 1.0
    """First bias of the forget gates; at 1 the cell remembers until it has learned to forget."""


class LstmState(NamedTuple):
    """Where both recurrences stand."""

    hidden_BD: Tensor
    cell_BD: Tensor
    """Both in float32 or better."""
    seen_B: Tensor
    """int64, on the CPU: positions consumed, padding included."""


class Lstm(Mixer):
    """Two LSTMs that share the width: one reads from the beginning and one from the end.

    In O(N D^2) time, N steps one after the other. Where causal, both read from the beginning, as
    two blocks of one recurrence, so that no parameter idles in either direction and both have as
    many. Padding is skipped wherever it stands: the state is kept, as if it were not there. The
    forget gate is that of Gers et al. (2000), its bias of 1 that of Jozefowicz et al. (2015).
    Computes in float32 or better; needs two channels at least.
    """

    Config = LstmConfig
    config: LstmConfig

    card = AttentionCard(
        title="LSTM",
        paper="Hochreiter and Schmidhuber, Long Short-Term Memory, Neural Computation, 1997",
        year=1997,
        time="O(n d^2)",
        memory="O(n d)",
        linear=False,
        capabilities=Capabilities(
            bidirectional=True, causal="strict", padding="content", decode="exact"
        ),
    )

    def __init__(
        self,
        dims: Dims,
        config: LstmConfig | None = None,
        *,
        layer_index: int = 0,
        shared: nn.Module | None = None,
        seed: int = 0,
    ) -> None:
        """Refuse a width that two recurrences cannot share."""
        super().__init__(dims, config, layer_index=layer_index, shared=shared, seed=seed)
        if dims.width < 2:
            raise UsageError(
                f"lstm: a width of {dims.width} is too small for two; choose 2 or more"
            )
        first = dims.width - dims.width // 2
        self.first = nn.LSTM(dims.width, first, batch_first=True)
        self.second = nn.LSTM(dims.width, dims.width - first, batch_first=True)
        for half in (self.first, self.second):
            # PyTorch has two biases that are added up, gates in the order input, forget, cell,
            # output.
            forget = slice(half.hidden_size, 2 * half.hidden_size)
            _, _, bias_x, bias_h = _weights(half)
            nn.init.constant_(bias_x[forget], self.config.forget_bias)
            nn.init.zeros_(bias_h[forget])

    def mix(
        self, x_BND: Tensor, context: Context, state: LstmState | None = None
    ) -> tuple[Tensor, LstmState | None]:
        """Return the outputs of both, side by side, and where they stand."""
        n = x_BND.shape[1]
        if not x_BND.numel():
            return x_BND, None if state is None else state._replace(seen_B=state.seen_B + n)
        precise = torch.promote_types(x_BND.dtype, torch.float32)
        with torch.autocast(x_BND.device.type, enabled=False):
            u_BND, mask_BN = x_BND.to(precise), context.query_mask_BN
            starts = [None, None] if state is None else _halves(state, self.first.hidden_size)
            flips = (False, not context.causal)
            ends = []
            for half, flip, start in zip((self.first, self.second), flips, starts, strict=True):
                ends.append(_read(half, u_BND, mask_BN, start, flip))
        y_BND = torch.cat([end[0] for end in ends], -1).to(x_BND.dtype)
        if state is None:
            return y_BND, None
        hidden_BD, cell_BD = (torch.cat([end[i] for end in ends], -1) for i in (1, 2))
        return y_BND, LstmState(hidden_BD, cell_BD, state.seen_B + n)

    def oracle(self, x_BND: Tensor, context: Context) -> Tensor:
        """Return the gates' formulas, step by step."""
        mask_BN = context.query_mask_BN
        columns = range(x_BND.shape[1])
        parts = []
        for half, backward in ((self.first, False), (self.second, not context.causal)):
            w_x, w_h, bias_x, bias_h = (weight.double() for weight in _weights(half))
            h_BW = x_BND.new_zeros(len(x_BND), half.hidden_size, dtype=torch.float64)
            c_BW, steps = h_BW, {}
            for column in reversed(columns) if backward else columns:
                gates = x_BND[:, column].double() @ w_x.T + h_BW @ w_h.T + bias_x + bias_h
                i, f, g, o = gates.chunk(4, dim=-1)
                c_new = f.sigmoid() * c_BW + i.sigmoid() * g.tanh()
                h_new = o.sigmoid() * c_new.tanh()
                if mask_BN is not None:
                    real_B1 = mask_BN[:, column, None]
                    h_new = torch.where(real_B1, h_new, h_BW)
                    c_new = torch.where(real_B1, c_new, c_BW)
                h_BW, c_BW = h_new, c_new
                steps[column] = h_BW
            parts.append(torch.stack([steps[column] for column in columns], dim=1))
        return torch.cat(parts, dim=-1)

    def operations(self, n: int, *, causal: bool = False) -> int:
        """Four gates of both recurrences, of an input and of the state before, at each position.

        A count finds them only where torch takes the steps itself, as in float64 on a CPU: in
        float32 there, and on a GPU, a library's kernel does, of which nothing is counted.
        """
        width = self.dims.width
        halves = (self.first.hidden_size, self.second.hidden_size)
        return sum(2 * n * (width + half) * 4 * half for half in halves)

    def empty_state(
        self, batch: int, *, length: int, device: torch.device, dtype: torch.dtype
    ) -> LstmState:
        """Return two zeros for each channel; their size is the same for any length."""
        precise = torch.promote_types(dtype, torch.float32)
        zeros_BD = torch.zeros(batch, self.dims.width, device=device, dtype=precise)
        return LstmState(zeros_BD, zeros_BD, torch.zeros(batch, dtype=torch.int64))


def _halves(state: LstmState, first: int) -> list[tuple[Tensor, Tensor]]:
    """Return hidden and cell of each recurrence."""
    hidden, cell = state.hidden_BD, state.cell_BD
    return [(hidden[:, :first], cell[:, :first]), (hidden[:, first:], cell[:, first:])]


def _read(
    lstm: nn.LSTM,
    u_BND: Tensor,
    mask_BN: Tensor | None,
    start: tuple[Tensor, Tensor] | None,
    flip: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return outputs (B, N, W), and hidden and cell after the last real position.

    With padding, real positions are brought together first and put back afterwards. A state needs
    to know where they end; without one, what padding behind them makes of it is nobody's matter.
    """
    batch, n, _ = u_BND.shape
    if start is None:
        zeros_BW = u_BND.new_zeros(batch, lstm.hidden_size)
        h_BW = c_BW = zeros_BW
    else:
        h_BW, c_BW = start
    if flip:
        u_BND = u_BND.flip(1)
    if mask_BN is None:
        y_BNW, h_new, c_new = _run(lstm, u_BND, h_BW, c_BW)
        return (y_BNW.flip(1) if flip else y_BNW), h_new, c_new
    if n == 1:
        # One position needs no count of real ones, which would wait for a GPU at every step.
        y_BNW, h_new, c_new = _run(lstm, u_BND, h_BW, c_BW)
        return y_BNW, torch.where(mask_BN, h_new, h_BW), torch.where(mask_BN, c_new, c_BW)
    if flip:
        mask_BN = mask_BN.flip(1)
    order_BN = torch.argsort((~mask_BN).to(torch.int8), dim=1, stable=True)
    u_BND = u_BND.gather(1, order_BN.unsqueeze(-1).expand_as(u_BND))
    if start is None:
        y_BNW, h_new, c_new = _run(lstm, u_BND, h_BW, c_BW)
    else:
        real_B = mask_BN.sum(1)
        # A packed sequence is one position long at least; that of an empty one is not kept.
        packed = pack_padded_sequence(
            u_BND, real_B.clamp(min=1).cpu(), batch_first=True, enforce_sorted=False
        )
        y_BNW, h_new, c_new = _run_packed(lstm, packed, h_BW, c_BW, n)
        any_B1 = (real_B > 0).unsqueeze(-1)
        h_new, c_new = torch.where(any_B1, h_new, h_BW), torch.where(any_B1, c_new, c_BW)
    back_BN = torch.argsort(order_BN, dim=1)
    y_BNW = y_BNW.gather(1, back_BN.unsqueeze(-1).expand_as(y_BNW))
    return (y_BNW.flip(1) if flip else y_BNW), h_new, c_new


def _weights(lstm: nn.LSTM) -> list[Tensor]:
    """Return what multiplies inputs, what multiplies states, and the bias of either."""
    weights: list[Tensor] = lstm.all_weights[0]  # type: ignore[assignment]
    return weights


def _run(lstm: nn.LSTM, u_BND: Tensor, h_BW: Tensor, c_BW: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return outputs, hidden and cell."""
    start = (h_BW.unsqueeze(0).contiguous(), c_BW.unsqueeze(0).contiguous())
    weights = [weight.to(u_BND.dtype) for weight in _weights(lstm)]
    y_BNW, h, c = torch.lstm(u_BND, start, weights, True, 1, 0.0, _keeps(lstm), False, True)
    return y_BNW, h[0], c[0]


def _keeps(lstm: nn.LSTM) -> bool:
    """Return whether a backward pass may follow, for which a GPU's kernel keeps what it needs only
    where it is told that it trains. Nothing else hangs on that: it has no dropout."""
    return lstm.training or torch.is_grad_enabled()


def _run_packed(
    lstm: nn.LSTM, packed: PackedSequence, h_BW: Tensor, c_BW: Tensor, n: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Return outputs (B, N, W), zero behind the real ones, and hidden and cell after these."""
    order, back = packed.sorted_indices, packed.unsorted_indices
    start = (h_BW[order].unsqueeze(0), c_BW[order].unsqueeze(0))
    weights = [weight.to(packed.data.dtype) for weight in _weights(lstm)]
    data, h, c = torch.lstm(
        packed.data, packed.batch_sizes, start, weights, True, 1, 0.0, _keeps(lstm), False
    )
    outputs = PackedSequence(data, packed.batch_sizes, order, back)
    y_BNW, _ = nn.utils.rnn.pad_packed_sequence(outputs, batch_first=True, total_length=n)
    return y_BNW, h[0][back], c[0][back]
