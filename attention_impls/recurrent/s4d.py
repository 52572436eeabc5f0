"""S4D: a diagonal state space for each channel, run as a convolution or as a recurrence.

B batch   N positions   D model width (channels)   S modes: half of the state, one of each pair of
conjugates   P lengths of the Fourier transform
"""

from __future__ import annotations

import math
from typing import Annotated, Literal, NamedTuple

import msgspec
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attention_impls.contract import Context, Dims, MechanismConfig, Mixer
from attention_impls.recurrent._modes import Modes, convolve
from lra.core.cards import AttentionCard, Capabilities
from lra.core.errors import UsageError


class S4dConfig(MechanismConfig, frozen=True):
    """Hyper-parameters of S4D."""

    state: Annotated[int, msgspec.Meta(ge=2)] = 64
    """Size of a channel's state: half of it are modes, the others their conjugates."""
    init: Literal["lin", "inv"] = "lin"
    """Frequencies that modes s = 0, 1, ... begin with. lin: pi s. inv: (N / pi) (N / (2 s + 1) - 1)
    for a state of size N. All decay at rate 1/2."""
    step_min: Annotated[float, msgspec.Meta(gt=0)] = 0.001
    step_max: Annotated[float, msgspec.Meta(gt=0)] = 0.1
    """Channels' step sizes begin log-uniformly between these two."""


class S4dState(NamedTuple):
    """The modes' states."""

    modes_BDS: Tensor
    """Complex, in the precision of float32 or better."""
    seen_B: Tensor
    """int64, on the CPU: positions consumed."""


class S4d(Mixer):
    """GLU(W GELU(K * u + D u)), K_l = 2 Re sum_s C_s (e^(a_s) - 1) / lambda_s e^(a_s l), with
    a = step lambda: lambda x' + u held constant over each step.

    In O(N log N) per channel by FFT, the kernel as a product of two tables of O(sqrt N) powers;
    decoding takes O(1) per position. Bidirectional, a second kernel of the same modes weighs what
    follows, from the next position on, so that none counts twice; where causal it is not used.
    Padding is skipped wherever it stands: no time passes. The paper trains step and lambda at a
    smaller rate and without decay; that is the trainer's matter. Computes in float32 or better.
    A transform rounds all outputs at the scale of the largest, so a causal output feels later
    inputs by that much: about 1e-7 of them in float32; step by step, decoding, it does not.
    """

    Config = S4dConfig
    config: S4dConfig
    trials = (S4dConfig(state=6, init="inv"),)

    card = AttentionCard(
        title="S4D",
        paper="Gu et al., On the Parameterization and Initialization of Diagonal State Space "
        "Models, NeurIPS 2022, arXiv:2206.11893",
        year=2022,
        time="O(n log n d)",
        memory="O(n d)",
        linear=False,
        capabilities=Capabilities(
            bidirectional=True, causal="strict", padding="content", decode="exact"
        ),
    )

    def __init__(
        self,
        dims: Dims,
        config: S4dConfig | None = None,
        *,
        layer_index: int = 0,
        shared: nn.Module | None = None,
        seed: int = 0,
    ) -> None:
        """Refuse a state that is no pairs, and steps the wrong way round."""
        super().__init__(dims, config, layer_index=layer_index, shared=shared, seed=seed)
        size, low, high = self.config.state, self.config.step_min, self.config.step_max
        if size % 2:
            raise UsageError(f"s4d: a state of {size} holds no pairs; choose an even size")
        if low > high:
            raise UsageError(f"s4d: step_min {low:g} exceeds step_max {high:g}; exchange them")
        width, modes = dims.width, size // 2
        index_S = torch.arange(modes, dtype=torch.float32)
        if self.config.init == "lin":
            frequency_S = math.pi * index_S
        else:
            frequency_S = size / math.pi * (size / (2 * index_S + 1) - 1)
        span = math.log(high) - math.log(low)
        self.log_step_D = nn.Parameter(torch.rand(width) * span + math.log(low))
        self.log_decay_DS = nn.Parameter(torch.full((width, modes), math.log(0.5)))
        self.frequency_DS = nn.Parameter(frequency_S.expand(width, modes).clone())
        # Real and imaginary part, so that a cast of the layer casts them: forwards, backwards.
        self.read_2DS2 = nn.Parameter(torch.randn(2, width, modes, 2) * math.sqrt(0.5))
        self.skip_D = nn.Parameter(torch.randn(width))
        self.output = nn.Linear(width, 2 * width, bias=dims.projection_biases)

    def mix(
        self, x_BND: Tensor, context: Context, state: S4dState | None = None
    ) -> tuple[Tensor, S4dState | None]:
        """Return the layer's output and the advanced state."""
        n = x_BND.shape[1]
        if not x_BND.numel():
            return x_BND, None if state is None else state._replace(seen_B=state.seen_B + n)
        precise, mask_BN = torch.promote_types(x_BND.dtype, torch.float32), context.query_mask_BN
        if mask_BN is not None:
            # Real positions first; the zeros behind them change nothing.
            order_BN = torch.argsort((~mask_BN).to(torch.int8), dim=1, stable=True)
            x_BND = x_BND.gather(1, order_BN.unsqueeze(-1).expand_as(x_BND))
        with torch.autocast(x_BND.device.type, enabled=False):
            u_BDN = x_BND.mT.to(precise)
            modes = Modes(
                self.log_step_D.to(precise),
                self.log_decay_DS.to(precise),
                self.frequency_DS.to(precise),
                n,
            )
            read_2DS = torch.view_as_complex(self.read_2DS2.to(precise)) * modes.gain_DS
            if state is None:
                kernels = modes.kernels(read_2DS[: 1 if context.causal else 2])
                y_BDN = convolve(u_BDN, kernels[0], None if context.causal else kernels[1])
            else:
                real_B = u_BDN.new_full((len(u_BDN),), n, dtype=torch.int64)
                real_B = real_B if mask_BN is None else mask_BN.sum(1)
                y_BDN, last_BDS = modes.advance(u_BDN, state.modes_BDS, read_2DS[0], real_B)
                state = S4dState(last_BDS, state.seen_B + n)
            y_BDN = torch.addcmul(y_BDN, u_BDN, self.skip_D.to(precise).unsqueeze(-1))
        y_BND = F.gelu(y_BDN.mT).to(x_BND.dtype)
        if mask_BN is not None:
            y_BND = y_BND.gather(1, order_BN.argsort(dim=1).unsqueeze(-1).expand_as(y_BND))
        return F.glu(self.output(y_BND)), state

    def oracle(self, x_BND: Tensor, context: Context) -> Tensor:
        """Return the layer with its kernels written out as matrices of lags."""
        u_BND, n = x_BND.double(), x_BND.shape[1]
        rates_DS = torch.complex(-self.log_decay_DS.double().exp(), self.frequency_DS.double())
        steps_DS = self.log_step_D.double().exp().unsqueeze(-1) * rates_DS
        read_2DS = torch.view_as_complex(self.read_2DS2.double())
        lags_N = torch.arange(n, device=x_BND.device)
        powers_DSN = torch.exp(steps_DS.unsqueeze(-1) * lags_N)
        taps_2DS = read_2DS * (steps_DS.exp() - 1) / rates_DS
        kernel_2DN = 2 * torch.einsum("kds,dsn->kdn", taps_2DS, powers_DSN).real
        lag_NN = lags_N.unsqueeze(-1) - lags_N
        total_DNN = kernel_2DN[0][:, lag_NN.clamp(min=0)] * (lag_NN >= 0)
        if not context.causal:
            total_DNN = total_DNN + kernel_2DN[1][:, (-lag_NN - 1).clamp(min=0)] * (lag_NN < 0)
        mask_BN = torch.ones_like(u_BND[..., 0], dtype=torch.bool)
        mask_BN = mask_BN if context.query_mask_BN is None else context.query_mask_BN
        y_BND = self.skip_D.double() * u_BND
        for example, real_N in enumerate(mask_BN):
            # Lags count real positions alone.
            total_DRR = total_DNN[:, : int(real_N.sum()), : int(real_N.sum())]
            read_RD = torch.einsum("dnm,md->nd", total_DRR, u_BND[example, real_N])
            y_BND[example, real_N] = y_BND[example, real_N] + read_RD
        y_BND = 0.5 * y_BND * (1 + torch.erf(y_BND / math.sqrt(2)))
        bias = self.output.bias
        pairs = y_BND @ self.output.weight.double().T + (0 if bias is None else bias.double())
        left, right = pairs.chunk(2, dim=-1)
        return left * torch.sigmoid(right)

    def operations(self, n: int, *, causal: bool = False) -> int:
        """4 N D^2 of the output, and for each kernel the product of two tables of ceil(sqrt(N))
        powers of 2 S real numbers, one per channel; two kernels, or one where causal.

        Left out are the Fourier transforms, O(N log N) per channel, and the gate's sums.
        """
        width, kernels = self.dims.width, 1 if causal else 2
        side = math.isqrt(n - 1) + 1
        tables = 2 * side * self.config.state * side * width
        return 2 * n * width * 2 * width + kernels * tables

    def empty_state(
        self, batch: int, *, length: int, device: torch.device, dtype: torch.dtype
    ) -> S4dState:
        """Return modes at rest; their size is the same for any length."""
        kind = torch.complex128 if dtype == torch.float64 else torch.complex64
        shape_BDS = (batch, self.dims.width, self.config.state // 2)
        modes_BDS = torch.zeros(shape_BDS, device=device, dtype=kind)
        return S4dState(modes_BDS, torch.zeros(batch, dtype=torch.int64))
