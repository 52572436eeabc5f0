"""Somebody's module in both directions."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from lra.core.errors import LraError, UnsupportedError


class Directions(nn.Module):
    """Somebody's module; two that share their parameters where its direction is decided when it is
    built."""

    def __init__(self, build: Callable[[bool], nn.Module], *, two: bool) -> None:
        super().__init__()
        generator = torch.get_rng_state()
        self.bidirectional = _sized(build(False))
        self.causal: nn.Module | None = None
        self.why_not_causal = ""
        if two:
            after = torch.get_rng_state()
            torch.set_rng_state(generator)
            try:
                self.causal = _sized(build(True))
            except LraError:
                raise
            except Exception as error:
                # The other direction may be all that is asked for.
                self.why_not_causal = f"{type(error).__name__}: {error}"
            torch.set_rng_state(after)
            if self.causal is not None:
                _tie(self.causal, self.bidirectional)
        self._known = {
            causal: {name for name, _ in part.named_parameters()}
            for causal, part in ((False, self.bidirectional), (True, self.causal))
            if part is not None
        }

    def of(self, causal: bool) -> nn.Module:
        """Return the module for a direction.

        Raises `UnsupportedError` for one that could not be built.
        """
        if causal and self.why_not_causal:
            line, name = " ".join(self.why_not_causal.split()), type(self.bidirectional).__name__
            raise UnsupportedError(f"{name} cannot be built with causal = True: {line}")
        return self.causal if causal and self.causal is not None else self.bidirectional

    def made_in_a_call(self, causal: bool) -> list[str]:
        """Return the names of parameters that the first call for a direction made; of later calls
        nothing is asked."""
        known = self._known.pop(causal, None)
        if known is None:
            return []
        return [name for name, _ in self.of(causal).named_parameters() if name not in known]


def _sized(module: nn.Module) -> nn.Module:
    """Return the module.

    Raises `LraError` for a parameter without a size, as a lazy layer's is before its first call.
    """
    for name, parameter in module.named_parameters():
        if is_lazy(parameter):
            raise LraError(
                f"{type(module).__name__}: its parameter '{name}' has no size before the first "
                "forward, and an optimiser takes none such; give its layer the size"
            )
    return module


def _tie(module: nn.Module, to: nn.Module) -> None:
    """Make a module share another's parameters where names and shapes agree."""
    theirs = dict(to.named_parameters(remove_duplicate=False))
    for name, parameter in list(module.named_parameters(remove_duplicate=False)):
        other = theirs.get(name)
        if other is not None and other.shape == parameter.shape:
            owner, _, leaf = name.rpartition(".")
            # Not registered anew: recurrent modules keep a list of their own.
            setattr(module.get_submodule(owner), leaf, other)
