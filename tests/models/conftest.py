from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from attention_impls.contract import Attention, Context, Dims, Position
from lra.core.cards import AttentionCard, Capabilities, PositionCard
from lra.core.protocol import ModelSpec
from lra.models.build import build_model
from lra.models.layers import Layers
from lra.models.model import Model


class MeanValue(Attention):
    """Every position gets the mean of the real values (to 0 where there are none)."""

    card = AttentionCard(
        title="",
        paper="",
        year=2020,
        time="",
        memory="",
        capabilities=Capabilities(bidirectional=True, padding="content"),
    )

    def attend(self, q: Tensor, k: Tensor, v: Tensor, context: Context, state: object = None):
        self.context = context
        mask = context.key_mask_BM
        if mask is None:
            return v.mean(dim=2, keepdim=True).expand_as(v), state
        total = v.masked_fill(~mask[:, None, :, None], 0).sum(dim=2, keepdim=True)
        return (total / mask.sum(dim=1).clamp(min=1)[:, None, None, None]).expand_as(v), state

    def oracle(self, *args: object) -> tuple[Tensor, Tensor]:
        raise NotImplementedError


class Drawing(MeanValue):
    """The same with parameters and a draw of its own, and one module shared by all layers."""

    def __init__(self, dims: Dims, *args: object, shared: nn.Module, **options: object) -> None:
        super().__init__(dims, *args, shared=shared, **options)
        self.own = nn.Parameter(torch.randn(7))
        self.table = shared
        self.register_buffer("draw", torch.rand(3, generator=torch.manual_seed(self.seed)))

    @classmethod
    def build_shared(cls, dims: Dims, config: object) -> nn.Module:
        return nn.Linear(5, 2)


class Ramp(Position):
    """Adds its position to every feature; keeps the positions it was asked for."""

    card = PositionCard(title="", paper="", year=2020, acts_on="input")

    def embed(self, positions_N: Tensor) -> Tensor:
        return positions_N.float()[:, None].expand(-1, self.dims.width)


class Inside(Position):
    """Acts on the logits, as far as its card goes."""

    card = PositionCard(title="", paper="", year=2020, acts_on="logits")


@pytest.fixture
def mechanisms() -> dict[str, type[Attention]]:
    return {"mean": MeanValue, "drawing": Drawing}


@pytest.fixture
def positions() -> dict[str, type[Position]]:
    return {"ramp": Ramp, "inside": Inside}


@pytest.fixture
def build() -> Callable[..., Model]:
    """Build a small model; spec fields and `build_model` arguments by name."""

    def build(**options: object) -> Model:
        spec = {"layers": 2, "width": 8, "qkv_width": 12, "heads": 3, "mlp_width": 16}
        fields = set(ModelSpec.__struct_fields__) & set(options) - {"position"}
        spec |= {name: options.pop(name) for name in fields}
        rest = {
            "position": Ramp, "vocabulary": 11, "classes": 3, "length": 6,
            "layers": Layers.of(options.pop("mechanism", MeanValue), options.pop("config", None)),
        } | options  # fmt: skip
        return build_model(ModelSpec(**spec), **rest)

    return build


@pytest.fixture(autouse=True)
def on_one_thread(one_thread: None) -> None:
    """Models and inputs are small throughout."""
