"""The encoder: a stack in whichever direction the model asks for."""

from __future__ import annotations

from lra.models.stack import Stack


class Encoder(Stack):
    """Each position from all others or, where the model asks for it, from those up to it."""
