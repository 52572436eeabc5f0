"""The form of a network around its mechanisms, and the published models that have it, as frozen
values."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from lra.core.errors import unknown_name
from lra.core.protocol import Fraction, Frozen, Mechanism, Positive
from lra.core.scales import convert, names, read_toml

_FOLDER = Path(__file__).resolve().parents[1] / "bodies"


class BlockForm(Frozen, frozen=True, kw_only=True):
    """Norms, biases and starts of a network, s being a mechanism or an MLP, D the model width.

    The default is the Long Range Arena's encoder.
    """

    norm: Literal["pre", "post"] = "pre"
    """pre: x + s(norm(x)). post: norm(x + s(x))."""
    norm_kind: Literal["layer", "rms"] = "layer"
    """rms: without mean and bias."""
    final_norm: bool = True
    embedding_norm: bool = False
    activation: Literal["relu", "gelu", "gelu_tanh"] = "gelu_tanh"
    attention_biases: bool = True
    mlp_biases: bool = True
    hidden_dropout: bool = True
    """Dropout after the MLP's activation, beside that on its output."""
    start: Literal["xavier", "normal", "fan_in"] = "xavier"
    """Weights at the start. xavier: uniform, tables N(0, 1 / D). normal: all N(0, .02^2). fan_in:
    N(0, 1 / inputs), tables N(0, 1)."""
    scaled_residual: bool = False
    """Weights that write to the residual stream start divided by the root of the number of
    additions to it."""
    scaled_input: bool = False
    """Embedded tokens times sqrt(D)."""
    tied: bool = True
    """The table of tokens gives the logits too."""
    scaled_output: bool = False
    """Vectors times 1 / sqrt(D) before they meet the tied table."""


class Size(Frozen, frozen=True, kw_only=True):
    """Sizes of a published model."""

    layers: Positive
    """Layers of each stack."""
    width: Positive
    qkv_width: Positive
    """Width of all heads' queries, keys or values together."""
    heads: Positive
    mlp_width: Positive
    vocabulary: Positive
    length: Positive
    """Rows of a table of positions."""


class Slot(Frozen, frozen=True, kw_only=True):
    """A stack's place for mechanisms."""

    mechanisms: tuple[Mechanism, ...]
    """A cycle over its layers."""
    position: str = "none"


class Preset(Frozen, frozen=True, kw_only=True):
    """A published kind of model: its form, its mechanisms and its sizes."""

    name: str
    title: str
    paper: str
    form: BlockForm
    dropout: Fraction
    decoder: Slot
    encoder: Slot | None = None
    """None: a decoder alone."""
    cross: Slot | None = None
    """Mechanisms by which the decoder's layers read the encoder's output."""
    sizes: dict[str, Size]

    def __post_init__(self) -> None:
        """Refuse one of encoder and cross without the other, and positions across sequences."""
        if (self.encoder is None) != (self.cross is None):
            raise ValueError("an encoder needs a cross slot, and a cross slot an encoder")
        if self.cross is not None and self.cross.position != "none":
            raise ValueError("cross takes no positions: distances across sequences mean nothing")


def load_preset(name: str) -> Preset:
    """Return a preset of `lra/bodies`; raises `UsageError` for an unknown name."""
    known = names("bodies")
    if name not in known:
        raise unknown_name("preset", name, known)
    where = f"preset file '{name}.toml'"
    content = read_toml((_FOLDER / f"{name}.toml").read_bytes(), where)
    return convert({"name": name, **content}, Preset, where)
