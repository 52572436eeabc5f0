"""Attention modules of Hugging Face's kind: built from a configuration object, called with
`hidden_states` and an additive `attention_mask`.

B batch   N queries   M keys   D model width
"""

from __future__ import annotations

import inspect
import sys
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from lra.adapters.masks import MaskForm, formed
from lra.adapters.module import AdaptedModule, ModuleConfig
from lra.adapters.roles import SIZES, roles
from lra.adapters.stranger import Stranger
from lra.core.errors import UsageError

OPTIONS = "options"
"""The setting that holds fields of the configuration object."""


class HuggingFaceConfig(ModuleConfig, frozen=True):
    """How the module is called."""

    mask_form: MaskForm = "additive"
    mask_per_head: bool = True
    """Whether its mask is (B, 1, 1, M), as most want it; else (B, M)."""


class AdaptedHuggingFace(AdaptedModule):
    """Somebody's module of Hugging Face's kind."""

    def _mask(self, keep_BM: Tensor, name: str, dtype: torch.dtype) -> Tensor | None:
        if self.config.mask_per_head:  # type: ignore[attr-defined]
            keep_BM = keep_BM[:, None, None, :]
        return formed(keep_BM, self._form(name), dtype)


class FromConfig(Stranger):
    """A class whose constructor takes one configuration object for all."""

    @cached_property
    def configuration(self) -> type:
        """The class of its configuration: annotated, or the one beside the module.

        Raises `UsageError` where there is none.
        """
        module = sys.modules[self.what.__module__]
        annotated = inspect.signature(self.what.__init__).parameters["config"].annotation
        if isinstance(annotated, str):
            annotated = getattr(module, annotated, None)
        if inspect.isclass(annotated) and annotated is not inspect.Parameter.empty:
            return annotated
        found = {m for n, m in vars(module).items() if n.endswith("Config") and inspect.isclass(m)}
        own = [
            m
            for m in found
            if m.__module__.rpartition(".")[0] == module.__name__.rpartition(".")[0]
        ]
        if len(own) != 1:
            raise UsageError(
                f"{self.name} takes a config, and its module names {len(own)} classes of one; "
                "annotate the parameter with the class"
            )
        return own[0]

    @cached_property
    def constructor(self) -> dict[str, inspect.Parameter]:
        """The fields of the configuration that are sizes, and one setting for all others."""
        default = self.configuration()
        names = [n for names in SIZES.values() for n in names if hasattr(default, n)]
        keyword = inspect.Parameter.KEYWORD_ONLY
        found = {n: inspect.Parameter(n, keyword, default=getattr(default, n)) for n in names}
        return {**found, **{OPTIONS: inspect.Parameter(OPTIONS, keyword, default={})}}

    @cached_property
    def sizes(self) -> dict[str, str]:
        """Names of the configuration's fields that the model decides, by role."""
        found = roles(self.constructor, SIZES)
        return {role: name for role, name in found.items() if role not in ("causal", "layers")}

    def make(self, arguments: dict[str, Any]) -> nn.Module:
        """Fill the configuration and build from it, in plain torch."""
        options = arguments.pop(OPTIONS, {})
        config = self.configuration(**{**arguments, **options})
        config._attn_implementation = "eager"
        takes = inspect.signature(self.what.__init__).parameters
        layer = roles(takes, {"layer_index": SIZES["layer_index"]})
        built: nn.Module = self.what(config, **dict.fromkeys(layer.values(), 0))
        return built
