"""Attention modules built from a configuration object, as Hugging Face's are, and called with
`hidden_states` and an additive `attention_mask`."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping
from functools import cached_property
from types import ModuleType
from typing import Any, cast, get_args

from torch import nn

from lra.adapters.external import External
from lra.adapters.masks import MaskForm
from lra.adapters.module import ModuleConfig
from lra.adapters.parameter_roles import KEY_HEADS, SIZES, names_by_role, parameters_of, takes_any
from lra.core.errors import UsageError

OPTIONS = "options"
"""The setting that holds fields of the configuration object."""


class HuggingFaceConfig(ModuleConfig, frozen=True):
    """Configuration of the call."""

    mask_form: MaskForm = "additive"
    mask_per_head: bool = True


class FromConfig(External):
    """A class whose constructor takes a configuration object, and maybe sizes of its own."""

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
            name = annotated.partition("|")[0].strip()
            named = (getattr(module, name, None) for module in modules)
            annotated = next(filter(None, named), None)
        for one in (annotated, *get_args(annotated)):
            if inspect.isclass(one) and one not in (inspect.Parameter.empty, type(None)):
                return one
        found = [_config_classes(module) for module in modules]
        for own in found:
            if len(own) == 1:
                return own.pop()
        raise UsageError(
            f"{self.name} takes a config, and its module names {len(found[0])} classes of one; "
            "annotate the parameter with the class"
        )

    @cached_property
    def own(self) -> dict[str, inspect.Parameter]:
        """The parameters of its constructor beside the configuration and the number of a layer."""
        takes = parameters_of(cast(type, self.what), "__init__")
        return {n: p for n, p in takes.items() if n not in ("config", *SIZES["layer_index"])}

    @cached_property
    def fields(self) -> dict[str, inspect.Parameter]:
        """The fields of the configuration that are sizes, and those without a default."""
        own, keyword = parameters_of(self.configuration, "__init__"), inspect.Parameter.KEYWORD_ONLY
        empty = inspect.Parameter.empty
        needed = [name for name, p in own.items() if p.default is empty]
        default = None if needed else self.configuration()
        any_field = takes_any(self.configuration.__init__)  # type: ignore[misc]
        found = {}
        known = (*(name for names in SIZES.values() for name in names), *KEY_HEADS, *needed)
        for name in known:
            if name in own or (any_field and hasattr(default, name)):
                value = getattr(default, name, own[name].default if name in own else None)
                found[name] = inspect.Parameter(
                    name, keyword, default=empty if name in needed else value
                )
        return found

    @cached_property
    def constructor(self) -> dict[str, inspect.Parameter]:
        """The parameters of its own, the fields of the configuration that are sizes, and one
        setting for all others."""
        options = inspect.Parameter(OPTIONS, inspect.Parameter.KEYWORD_ONLY, default={})
        return {**self.fields, **self.own, OPTIONS: options}

    @cached_property
    def sizes(self) -> dict[str, str]:
        """Names of the parameters and fields that the model decides, by role: its own come
        first."""
        return {**self._decided(self.fields), **self._decided(self.own)}

    @cached_property
    def further_sizes(self) -> dict[str, str]:
        """Roles of the fields that have a parameter of its own beside them, and of the number of
        heads of keys."""
        own = self._decided(self.own)
        beside = {name: role for role, name in self._decided(self.fields).items() if role in own}
        return {**beside, **{n: "key_heads" for n in KEY_HEADS if n in self.fields}}

    def _decided(self, parameters: Mapping[str, inspect.Parameter]) -> dict[str, str]:
        """Return names by role. Others than needed ones have no say in the number of layers, nor
        in a direction, which its masks decide."""
        found = names_by_role(parameters, SIZES)
        return {
            role: name
            for role, name in found.items()
            if role not in ("causal", "layers")
            or parameters[name].default is inspect.Parameter.empty
        }

    def make(self, arguments: dict[str, Any]) -> nn.Module:
        """Fill the configuration and build from it, in plain torch."""
        options = arguments.pop(OPTIONS, {})
        fields = {name: value for name, value in arguments.items() if name in self.fields}
        for name in KEY_HEADS:
            if name in fields:
                fields[name] = self._key_heads(fields[name], self.fields[name].default)
        own = {name: value for name, value in arguments.items() if name in self.own}
        config = self.configuration(**{**fields, **options})
        if hasattr(config, "_attn_implementation"):
            config._attn_implementation = "eager"
        takes = parameters_of(cast(type, self.what), "__init__")
        layer = names_by_role(takes, {"layer_index": SIZES["layer_index"]})
        built: nn.Module = self.what(config=config, **own, **dict.fromkeys(layer.values(), 0))
        return built

    def _key_heads(self, heads: int, default: Any) -> int:
        """Return the number of heads of keys: the share of the heads that it is by default, or less
        where that is no divisor."""
        all_heads = self.fields[self._decided(self.fields)["heads"]].default
        if not isinstance(default, int) or not isinstance(all_heads, int):
            return heads
        most = max(1, heads * default // all_heads)
        return next(n for n in range(most, 0, -1) if heads % n == 0)


def _config_classes(module: ModuleType) -> set[type]:
    """Return the configuration classes that a module or one beside it defines."""
    found = {m for n, m in vars(module).items() if n.endswith("Config") and inspect.isclass(m)}
    home = module.__name__.rpartition(".")[0]
    return {
        m for m in found if m.__module__.rpartition(".")[0] == home and not issubclass(m, nn.Module)
    }
