"""Attention modules built from a configuration object, as Hugging Face's are, and called with
`hidden_states` and an additive `attention_mask`."""

from __future__ import annotations

import inspect
import sys
from functools import cached_property
from types import ModuleType
from typing import Any, cast

from torch import nn

from lra.adapters.external import External
from lra.adapters.masks import MaskForm
from lra.adapters.module import ModuleConfig
from lra.adapters.parameter_roles import SIZES, names_by_role, parameters_of, takes_any
from lra.core.errors import UsageError

OPTIONS = "options"
"""The setting that holds fields of the configuration object."""


class HuggingFaceConfig(ModuleConfig, frozen=True):
    """Configuration of the call."""

    mask_form: MaskForm = "additive"
    mask_per_head: bool = True


class FromConfig(External):
    """A class whose constructor takes a single configuration object."""

    @cached_property
    def configuration(self) -> type:
        """The class of its configuration: annotated, or defined beside the module or beside one of
        its base classes.

        Raises `UsageError` where there is none.
        """
        what = cast(type, self.what)
        bases = [base for base in what.__mro__ if base not in (nn.Module, object)]
        modules = dict.fromkeys(sys.modules[base.__module__] for base in bases)
        annotated = parameters_of(what, "__init__")["config"].annotation
        if isinstance(annotated, str):
            named = (getattr(module, annotated, None) for module in modules)
            annotated = next(filter(None, named), None)
        if inspect.isclass(annotated) and annotated is not inspect.Parameter.empty:
            return annotated
        found = [_config_classes(module) for module in modules]
        for own in found:
            if len(own) == 1:
                return own.pop()
        raise UsageError(
            f"{self.name} takes a config, and its module names {len(found[0])} classes of one; "
            "annotate the parameter with the class"
        )

    @cached_property
    def constructor(self) -> dict[str, inspect.Parameter]:
        """The fields of the configuration that are sizes, and one setting for all others."""
        default, own = self.configuration(), parameters_of(self.configuration, "__init__")
        any_field = takes_any(self.configuration.__init__)  # type: ignore[misc]
        found = {}
        for name in (name for names in SIZES.values() for name in names):
            if name in own or (any_field and hasattr(default, name)):
                value = getattr(default, name, None)
                found[name] = inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=value)
        options = inspect.Parameter(OPTIONS, inspect.Parameter.KEYWORD_ONLY, default={})
        return {**found, OPTIONS: options}

    @cached_property
    def sizes(self) -> dict[str, str]:
        """Names of the configuration's fields that the model decides, by role."""
        found = names_by_role(self.constructor, SIZES)
        return {role: name for role, name in found.items() if role not in ("causal", "layers")}

    def make(self, arguments: dict[str, Any]) -> nn.Module:
        """Fill the configuration and build from it, in plain torch."""
        options = arguments.pop(OPTIONS, {})
        config = self.configuration(**{**arguments, **options})
        if hasattr(config, "_attn_implementation"):
            config._attn_implementation = "eager"
        takes = parameters_of(cast(type, self.what), "__init__")
        layer = names_by_role(takes, {"layer_index": SIZES["layer_index"]})
        built: nn.Module = self.what(config, **dict.fromkeys(layer.values(), 0))
        return built


def _config_classes(module: ModuleType) -> set[type]:
    """Return the configuration classes that a module or one beside it defines."""
    found = {m for n, m in vars(module).items() if n.endswith("Config") and inspect.isclass(m)}
    home = module.__name__.rpartition(".")[0]
    return {m for m in found if m.__module__.rpartition(".")[0] == home}
