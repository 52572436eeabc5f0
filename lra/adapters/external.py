"""Somebody's class or function, as its signatures describe it, and how it is built.

D model width   H heads
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import takewhile
from typing import Any, cast, get_type_hints

import msgspec
import torch
from torch import Tensor, nn

from attention_impls.contract import Dims, MechanismConfig
from lra.adapters.masks import MaskedConfig, MaskForm, convert_mask
from lra.adapters.parameter_roles import (
    CALL,
    SIZES,
    is_ignored,
    names_by_role,
    parameters,
    parameters_of,
)
from lra.adapters.rotary import may_be_tables, rotary_tables
from lra.adapters.settings import free_parameters, is_of_type, setting_type
from lra.core.errors import UsageError

GIVEN = {"batch_first": True}
"""Constructor arguments that always have these values: examples come first."""


@dataclass(frozen=True)
class External:
    """Somebody's attention: a class of torch modules, or a function."""

    what: Callable[..., Any]
    name: str
    """Its name in error messages."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Settings that replace the constructor's defaults and the adapter's."""
    claims: Mapping[str, Any] = field(default_factory=dict)
    """Capabilities that replace those read from its signatures."""
    package: str = ""
    """Name of the distribution that it comes from; empty where unknown."""
    note: str = ""
    """Note for readers about this use of it."""

    @cached_property
    def constructor(self) -> dict[str, inspect.Parameter]:
        """Parameters of its constructor, by name; none for a function."""
        return parameters_of(self.what, "__init__") if inspect.isclass(self.what) else {}

    @cached_property
    def sizes(self) -> dict[str, str]:
        """Names of the constructor's parameters that the model decides, by role."""
        return names_by_role(self.constructor, SIZES)

    @property
    def further_sizes(self) -> dict[str, str]:
        """Roles of further parameters that the model decides, by name."""
        return {}

    @cached_property
    def call(self) -> dict[str, inspect.Parameter]:
        """Parameters of its call, by name."""
        if inspect.isclass(self.what):
            return parameters_of(self.what, "forward")
        return parameters(self.what)

    @cached_property
    def asks(self) -> dict[str, str]:
        """Names of the call's parameters, by role; a key without a value counts as none, and so
        does the first parameter as another source, or a cosine without a sine."""
        found = names_by_role(self.call, CALL)
        alone = {
            role
            for pair in (("key", "value"), ("cosines", "sines"))
            if not found.keys() >= set(pair)
            for role in pair
        }
        if found.get("source") == next(iter(self.call), ""):
            alone.add("source")
        if "rotary" in found and not may_be_tables(self.call[found["rotary"]]):
            alone.add("rotary")
        return {role: name for role, name in found.items() if role not in alone}

    @property
    def built_causal(self) -> bool:
        """Whether its direction is decided when it is built."""
        return "causal" in self.sizes or "$causal" in str(self.settings)

    @property
    def first(self) -> str:
        """Name of the sequence that it attends from; empty where there is none."""
        positional = (p.name for p in self.call.values() if p.kind is not p.KEYWORD_ONLY)
        first = next(positional, "")
        return self.asks.get("query", first) if "key" in self.asks else first

    @property
    def needs_mask(self) -> bool:
        """Whether it cannot be called without a mask."""
        masks = {self.asks.get("key_mask"), self.asks.get("pairs_mask")}
        return not masks.isdisjoint(self.unmet(set()))

    def habit(self, name: str) -> MaskForm:
        """Return the usual meaning of a mask of this name; torch's own two go together."""
        names = (
            {name, self.asks.get("key_mask", "")} if name == self.asks.get("pairs_mask") else {name}
        )
        return "ignore" if any(map(is_ignored, names)) else "keep"

    def masks(
        self, keep: Mapping[str, Tensor | None], config: MaskedConfig, dtype: torch.dtype
    ) -> dict[str, Tensor]:
        """Return masks, True where one may attend, by role, as masks in its own form, by its own
        names."""
        named: dict[str, Tensor] = {}
        for role, mask in keep.items():
            if mask is None or role not in self.asks:
                continue
            if config.mask_per_head and mask.ndim == 2 and role != "pairs_mask":
                mask = mask[:, None, None, :]
            name = self.asks[role]
            named[name] = convert_mask(mask, config.mask_form or self.habit(name), dtype)
        return named

    def attends(
        self, query: Tensor, key: Tensor, value: Tensor
    ) -> tuple[list[Tensor], dict[str, Tensor]]:
        """Return the sequences that it attends from and to: in its own order as far as its
        signature begins with them, then by name."""
        given = {self.first: query, self.asks["key"]: key, self.asks["value"]: value}
        named = {name for name, p in self.call.items() if p.kind is p.KEYWORD_ONLY}
        leading = list(takewhile(lambda name: name in given and name not in named, self.call))
        return [given.pop(name) for name in leading], given

    def tables(self, like: Tensor, width: int) -> dict[str, Any]:
        """Return the tables of rotary positions that its call asks for, by its own names, for the
        positions of `like`, (B, ..., N, D)."""
        asks = self.asks
        if not {"rotary", "cosines"} & asks.keys():
            return {}
        tables = rotary_tables(like, width)
        if "rotary" in asks:
            return {asks["rotary"]: tables}
        return {asks["cosines"]: tables[0], asks["sines"]: tables[1]}

    def unmet(self, given: set[str]) -> list[str]:
        """Return the parameters of a call that have no default and are not among these."""
        empty = inspect.Parameter.empty
        return [n for n, p in self.call.items() if p.default is empty and n not in given]

    def config(self, base: type[MechanismConfig]) -> type[MechanismConfig]:
        """Return its settings: the adapter's and the constructor's, sizes left out. A setting of
        both has the constructor's default where the adapter's type allows that."""
        taken = {*self.sizes.values(), *self.further_sizes, *GIVEN}
        own = {**dict(free_parameters(self.constructor, taken)), **self.settings}
        adapters = get_type_hints(base, include_extras=True)
        fields = [
            (
                name,
                adapters[name]
                if name in adapters
                else setting_type(value, self.constructor.get(name)),
                msgspec.field(default_factory=partial(copy, value)),
            )
            for name, value in own.items()
            if name not in adapters or name in self.settings or is_of_type(value, adapters[name])
        ]
        made = msgspec.defstruct(
            f"{type(self).__name__}Config",
            fields,
            bases=(base,),
            frozen=True,
            forbid_unknown_fields=True,
        )
        return cast(type[MechanismConfig], made)

    def build(
        self, dims: Dims, config: MechanismConfig, *, layer_index: int, causal: bool
    ) -> nn.Module:
        """Return a module of these sizes.

        Raises `UsageError` for an argument that nobody gave.
        """
        arguments = {name: value for name, value in GIVEN.items() if name in self.constructor}
        for name, value in msgspec.structs.asdict(config).items():
            if name not in self.constructor or self._means_otherwise(name, config):
                continue
            if value != self.constructor[name].default:
                arguments[name] = value
        values = _size_values(dims, layer_index=layer_index, causal=causal)
        arguments = _substitute_roles(arguments, values)
        arguments |= {name: values[role] for role, name in self.sizes.items()}
        arguments |= {name: values[role] for name, role in self.further_sizes.items()}
        for name, parameter in self.constructor.items():
            if parameter.default is parameter.empty and arguments.get(name) is None:
                raise UsageError(
                    f"{self.name} is built with '{name}', which has no default; "
                    f"give it: --set {name}=VALUE{self._advice(parameter)}"
                )
        return self.make(arguments)

    def _means_otherwise(self, name: str, config: MechanismConfig) -> bool:
        """Whether the constructor uses the name of an adapter's setting for something else: its
        default would mean nothing there."""
        switches = get_type_hints(type(config).__bases__[0], include_extras=True)
        default = self.constructor[name].default
        empty = default is inspect.Parameter.empty
        return name in switches and not empty and not is_of_type(default, switches[name])

    def _advice(self, parameter: inspect.Parameter) -> str:
        """Return how to give a size, and the names by which it is known, where the parameter may be
        a whole number. A number would fit a model of one width alone."""
        if parameter.annotation not in (int, "int", parameter.empty):
            return ""
        return "".join(
            f"; if it is the {words}, --set '{parameter.name}=${role}', or call it "
            f"{' or '.join(SIZES[role][:2])}"
            for role, words in (("width", "width"), ("heads", "number of heads"))
            if role not in self.sizes
        )

    def make(self, arguments: dict[str, Any]) -> nn.Module:
        """Call the constructor; a function is wrapped."""
        if not inspect.isclass(self.what):
            return Function(self.what)
        return cast(nn.Module, self.what(**arguments))


def is_causal_by_pair_mask(stranger: External) -> bool:
    """Whether causality is asked for by a mask of pairs: torch's habit, shown by the names query,
    key and value, or by its name for padding."""
    asks = stranger.asks
    habit = "key" in asks or is_ignored(asks.get("key_mask", ""))
    return not stranger.built_causal and "pairs_mask" in asks and habit


def _size_values(dims: Dims, *, layer_index: int, causal: bool) -> dict[str, Any]:
    """Return the values that the model decides, by role."""
    return {
        "width": dims.width,
        "source_width": dims.width,
        "heads": dims.heads,
        "key_heads": dims.heads,
        "head_width": dims.head_width,
        "dropout": dims.dropout,
        "output_dropout": dims.dropout,
        "max_length": dims.max_length,
        "layer_index": layer_index,
        "layers": dims.layers,
        "causal": causal,
    }


def _substitute_roles(value: Any, values: Mapping[str, Any]) -> Any:
    """Replace `$role` by the value that the model decides for it."""
    if isinstance(value, dict):
        return {key: _substitute_roles(inner, values) for key, inner in value.items()}
    return values[value[1:]] if isinstance(value, str) and value[1:] in values else value


class Function(nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self._function = function

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call it."""
        return self._function(*args, **kwargs)
