"""The sizes that a model gives its mechanisms and its position scheme."""

from __future__ import annotations

from dataclasses import dataclass

from lra.core.errors import UsageError


@dataclass(frozen=True)
class Dims:
    """Sizes that every mechanism of a model shares."""

    width: int
    """D, of the residual stream."""
    qkv_width: int
    """Width of all heads' queries (keys, values) together."""
    heads: int
    max_length: int
    """Longest input, a class token included."""
    layers: int = 1
    dropout: float = 0.0
    """On attention weights, where the mechanism has any."""
    projection_biases: bool = True
    picture_width: int | None = None
    """Pixels in a row, where the input is a picture read row by row; None where it is none."""

    def __post_init__(self) -> None:
        """Refuse what is no size, no share, and heads that do not divide the width."""
        for name in ("width", "qkv_width", "heads", "max_length", "layers"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name} is {getattr(self, name)}; choose 1 or more")
        if self.picture_width is not None and self.picture_width < 1:
            raise UsageError(
                f"picture_width is {self.picture_width}; choose 1 or more, or None for no picture"
            )
        if not 0.0 <= self.dropout < 1.0:
            raise UsageError(f"dropout is {self.dropout:g}; choose 0 or more, and less than 1")
        if self.qkv_width % self.heads:
            raise UsageError(
                f"{self.heads} heads do not divide the qkv width {self.qkv_width}; "
                "choose a multiple"
            )

    @property
    def head_width(self) -> int:
        """Width of one head."""
        return self.qkv_width // self.heads
