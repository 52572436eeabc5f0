"""Published models as frozen values: form, mechanisms and sizes."""

from __future__ import annotations

from pathlib import Path

from lra.core.errors import unknown_name
from lra.core.protocol import BlockForm, Fraction, Frozen, Mechanism, Positive
from lra.core.scales import convert, names, read_toml

_FOLDER = Path(__file__).resolve().parents[1] / "presets"


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
    """Return a preset of `lra/presets`; raises `UsageError` for an unknown name."""
    known = names("presets")
    if name not in known:
        raise unknown_name("preset", name, known)
    where = f"preset file '{name}.toml'"
    content = read_toml((_FOLDER / f"{name}.toml").read_bytes(), where)
    return convert({"name": name, **content}, Preset, where)
