"""Somebody's module in both directions."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from lra.core.errors import LraError, UnsupportedError


class Directions(nn.Module):
    """Somebody's module; two that share their parameters where its direction is decided when it is
    built."""

    def __init__(self, build: Callable[[bool], nn.Module], *, two: bool) -> None:
        super().__init__()
        generator = torch.get_rng_state()
        self.bidirectional = build(False)
        self.causal: nn.Module | None = None
        self.why_not_causal = ""
        if two:
            after = torch.get_rng_state()
            torch.set_rng_state(generator)
            try:
                self.causal = build(True)
            except LraError:
                raise
            except Exception as error:
                # The other direction may be all that is asked for.
                self.why_not_causal = f"{type(error).__name__}: {error}"
            torch.set_rng_state(after)
            if self.causal is not None:
                _tie(self.causal, self.bidirectional)

    def of(self, causal: bool) -> nn.Module:
        """Return the module for a direction.

        Raises `UnsupportedError` for one that could not be built.
        """
        if causal and self.why_not_causal:
            line, name = " ".join(self.why_not_causal.split()), type(self.bidirectional).__name__
            raise UnsupportedError(f"{name} cannot be built with causal = True: {line}")
        return self.causal if causal and self.causal is not None else self.bidirectional


def _tie(module: nn.Module, to: nn.Module) -> None:
    """Make a module share another's parameters where names and shapes agree."""
    theirs = dict(to.named_parameters(remove_duplicate=False))
    for name, parameter in list(module.named_parameters(remove_duplicate=False)):
        other = theirs.get(name)
        if other is not None and other.shape == parameter.shape:
            owner, _, leaf = name.rpartition(".")
            # Not registered anew: recurrent modules keep a list of their own.
            setattr(module.get_submodule(owner), leaf, other)
