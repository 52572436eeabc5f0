"""Components written for xFormers' registry, and the three names that they import.

The registry left xFormers with release 0.0.29. A component written for it works
again with another import:

    from lra.adapters.xformers import Attention, AttentionConfig, register_attention

B batch   N queries   M keys   H heads   K width of a query or key head   V width of a value head
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeVar

from torch import Tensor, nn

from lra.adapters.core import AdaptedCore
from lra.adapters.external import External
from lra.adapters.masks import MaskForm
from lra.core.errors import UnsupportedError, UsageError

_Component = TypeVar("_Component", bound=type)


@dataclasses.dataclass
class AttentionConfig:
    """Configuration that every component shares; others extend it."""

    name: str
    dropout: float


class Attention(nn.Module):
    """Base class of a component, whose constructor may change these requirements and
    capabilities."""

    def __init__(self, dropout: float | None = None, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        self.requires_input_projection = True
        self.requires_head_dimension = False
        self.requires_separate_masks = False
        self.requires_same_k_q_dimensions = False
        self.requires_skip_multi_head = False
        self.requires_squared_context = False
        self.supports_attention_mask = True
        self.supports_key_padding_mask = False

    @classmethod
    def from_config(cls, config: Any) -> Attention:
        """Build from a configuration; fields that are None keep the constructor's defaults."""
        fields = dataclasses.asdict(config)
        return cls(**{name: value for name, value in fields.items() if value is not None})


def register_attention(name: str, config: type) -> Callable[[_Component], _Component]:
    """Mark a component with its name and the dataclass of its configuration."""

    def mark(component: _Component) -> _Component:
        component.registered_as = name  # type: ignore[attr-defined]
        component.config_class = config  # type: ignore[attr-defined]
        return component

    return mark


_SUPPORT = {"pairs_mask": "supports_attention_mask", "key_mask": "supports_key_padding_mask"}
"""Attributes by which a component declares the masks that it supports, by role of the mask."""


class AdaptedXformers(AdaptedCore):
    """Somebody's component between our projections, heads folded into the batch."""

    def __init__(self, dims: Any, config: Any = None, **own: Any) -> None:
        super().__init__(dims, config, **own)
        if getattr(self.inner.bidirectional, "requires_skip_multi_head", False):
            raise UsageError(
                f"{self.name} brings its own heads (requires_skip_multi_head); wrap it as a module "
                "that takes and returns (B, N, D)"
            )

    def _called(
        self,
        causal: bool,
        q_BHNK: Tensor,
        k_BHMK: Tensor,
        v_BHMV: Tensor,
        named: dict[str, Any],
    ) -> Any:
        """Fold heads into the batch, unless the component wants them apart, and unfold them
        again."""
        module = self.inner.of(causal)
        for role, flag in _SUPPORT.items():
            if self.stranger.asks.get(role) in named and not getattr(module, flag, True):
                raise UnsupportedError(
                    f"{self.name} takes '{self.stranger.asks[role]}' and says of itself {flag} = "
                    f"False; add `self.{flag} = True` to the end of its __init__, or leave the "
                    "parameter out"
                )
        if getattr(module, "requires_head_dimension", False):
            return super()._called(causal, q_BHNK, k_BHMK, v_BHMV, named)
        batch, heads, n, m = *q_BHNK.shape[:3], k_BHMK.shape[2]
        for name, mask in named.items():
            if isinstance(mask, Tensor) and mask.ndim == 4:
                named[name] = mask.expand(batch, heads, n, m).flatten(0, 1)
        q, k, v = (x.flatten(0, 1) for x in (q_BHNK, k_BHMK, v_BHMV))
        given = super()._called(causal, q, k, v, named)
        return given.view(batch, heads, *given.shape[1:]) if isinstance(given, Tensor) else given


class Component(External):
    """A class of xFormers' kind, built from the dataclass that it is registered with, if any."""

    @cached_property
    def constructor(self) -> dict[str, inspect.Parameter]:
        """Fields of its configuration, where None stands for the constructor's default."""
        config = getattr(self.what, "config_class", None)
        if config is None:
            return super().constructor
        keyword = inspect.Parameter.KEYWORD_ONLY
        found = {f.name: _default(f) for f in dataclasses.fields(config) if f.name != "name"}
        return {name: inspect.Parameter(name, keyword, default=d) for name, d in found.items()}

    def habit(self, name: str) -> MaskForm:
        """Return "keep": True means attend in all its masks, whatever their names."""
        return "keep"

    def make(self, arguments: dict[str, Any]) -> nn.Module:
        """Build it from its configuration."""
        config = getattr(self.what, "config_class", None)
        if config is None:
            return super().make(arguments)
        fields = dict.fromkeys((f.name for f in dataclasses.fields(config)), None)
        own = {name: p.default for name, p in self.constructor.items()}
        named = {"name": self.what.registered_as}  # type: ignore[attr-defined]
        built: nn.Module = self.what.from_config(config(**(fields | own | arguments | named)))  # type: ignore[attr-defined]
        return built


def _default(field: dataclasses.Field[Any]) -> Any:
    return None if field.default is dataclasses.MISSING else field.default
