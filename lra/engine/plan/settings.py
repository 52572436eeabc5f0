"""`--set key=value`: overrides of a mechanism's, the model's or the training's fields.

    features=64              the mechanisms asked for that have the field
    performer.features=64    one mechanism
    training.steps=200       a field of the training protocol
    model.width=128          a field of the model around the mechanism

Values are TOML (`true`, `3e-4`, `[1, 2]`); a bare word is a string.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, TypeVar

import msgspec

from lra.core import peers
from lra.core.catalogue import Target, entry_point_names, names
from lra.core.errors import UsageError, unknown_name
from lra.core.protocol import ModelSpec, TrainSpec
from lra.core.scales import convert
from lra.engine.plan.describe import Description

_Spec = TypeVar("_Spec", ModelSpec, TrainSpec)


class Settings:
    """The overrides of one run, and which of them have been used."""

    def __init__(self, entries: dict[str, str]) -> None:
        self._values = {key: _value(key, text) for key, text in entries.items()}
        self._unused = set(entries)
        self._fields: set[str] = set()

    def override(self, section: str, spec: _Spec) -> _Spec:
        """Return `spec` with the values of `section.field` set, checked like a scale file."""
        changes: dict[str, Any] = {}
        for key, value in self._values.items():
            head, _, field = key.partition(".")
            if head == section and field:
                if field not in spec.__struct_fields__:
                    raise unknown_name(f"{section} field", field, spec.__struct_fields__)
                changes[field] = value
                self._unused.discard(key)
        if not changes:
            return spec
        return convert(msgspec.to_builtins(spec) | changes, type(spec), f"--set {section}")

    def configure(
        self,
        target: Target,
        description: Description,
        *,
        asked_for: bool,
        scale: Mapping[str, Any] = MappingProxyType({}),
    ) -> dict[str, Any]:
        """Return a mechanism's full configuration: its defaults, overridden by the scale's, then by
        a person's.

        Bare keys count only where the mechanism was asked for. A mechanism that is unavailable
        takes all keys that may be meant for it, and its configuration is empty.
        """
        if description.unavailable is not None:
            self._unused = {
                key for key in self._unused if "." in key and not key.startswith(f"{target.name}.")
            }
            return {}
        fields = description.defaults
        changes: dict[str, Any] = dict(scale)
        for key, value in self._values.items():
            head, dot, field = key.partition(".")
            if dot and head == target.name:
                changes[field] = value
                self._unused.discard(key)
            elif not dot and asked_for:
                self._fields.update(fields)
                if key in fields:
                    changes[key] = value
                    self._unused.discard(key)
        return description.configure(changes, f"settings of '{target.name}'")

    def refuse_unused(self) -> None:
        """Raise `UsageError` for the first unused key."""
        for key in sorted(self._unused):
            head, dot, field = key.partition(".")
            if head in ("model", "training") and field:
                raise UsageError(f"--set {key}: nothing is trained here; leave it out")
            if dot and head in (
                *names("mechanism"),
                *entry_point_names("mechanism"),
                *peers.names(),
            ):
                raise UsageError(
                    f"--set {key}: '{head}' is not in this run; add it to --impl, or leave the "
                    "setting out"
                )
            if dot:
                raise UsageError(
                    f"--set {key}: '{head}' is neither a mechanism of this run nor model or "
                    "training; check the spelling (a task's parameters stand in a scale file)"
                )
            if not self._fields:
                raise UsageError(
                    f"--set {key}: no mechanism of this run has settings; leave it out"
                )
            raise unknown_name("setting", key, self._fields)


def _value(key: str, text: str) -> Any:
    try:
        value = tomllib.loads(f"value = {text}")["value"]
        # Values travel to a worker as JSON.
        msgspec.msgpack.encode(value)
    except tomllib.TOMLDecodeError:
        return text
    except (OverflowError, ValueError) as error:
        # Python refuses to read a number of thousands of digits.
        raise UsageError(f"--set {key}: a number beyond 64 bits; write one within them") from error
    except RecursionError as error:
        raise UsageError(f"--set {key}: brackets in too many brackets; write fewer") from error
    if isinstance(value, float) and not math.isfinite(value):
        raise UsageError(f"--set {key}={text}: not a finite number; write one")
    return value
