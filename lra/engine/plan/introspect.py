"""Answers about modules, in a process that may import them: declarations and full configurations.

`python -m lra.engine.plan.introspect` reads requests as lines of JSON and writes answers the same
way, importing just the modules asked for, each once.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any, TypeVar

import msgspec

from lra.core import loading
from lra.core.cards import AttentionCard, PositionCard, TaskCard
from lra.core.catalogue import Kind, Target
from lra.core.errors import LraError
from lra.core.loading import MisnamedError
from lra.core.traceback_place import place_of
from lra.core.validation import why_invalid
from lra.engine.process.error_text import named_line, publishable

_Value = TypeVar("_Value")

CARDS: dict[Kind, type[msgspec.Struct]] = {
    "mechanism": AttentionCard,
    "position": PositionCard,
    "task": TaskCard,
}


class Request(msgspec.Struct, frozen=True):
    """A question about one module."""

    target: Target
    changes: dict[str, Any] | None = None
    """Fields to set in its configuration; None asks for the declaration."""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """Declaration of the module, or the configuration with all defaults filled in, or the reason
    for neither."""

    card: dict[str, Any] | None = None
    defaults: dict[str, Any] = {}
    config: dict[str, Any] | None = None
    unknown: str | None = None
    """Name of a field that the configuration lacks."""
    problem: str | None = None
    """Reason why a value does not fit."""
    unavailable: str | None = None
    """Reason why the module cannot be imported."""
    misnamed: bool = False
    """Whether the module can be imported but lacks the name asked for."""


def answer_request(request: Request) -> Answer:
    """Import the module of a request and answer it; an error there is an answer too."""
    try:
        return _answer(request)
    except LraError as error:
        return Answer(
            unavailable=publishable(named_line(error)), misnamed=isinstance(error, MisnamedError)
        )
    except (Exception, SystemExit) as error:
        words = publishable(named_line(error))
        # A syntax error's own words end with its place.
        inside = "" if isinstance(error, SyntaxError) else place_of(error, request.target.module)
        return Answer(unavailable=words + inside)


def _answer(request: Request) -> Answer:
    found = _load(request.target)
    config = getattr(found, "Config", None)
    if request.changes is not None:
        return _configure(config, request.changes)
    if not hasattr(found, "card"):
        kind = request.target.kind
        raise LraError(f"it is no {kind}, as it declares no card; CONTRIBUTING.md says how")
    card = _validated("card", msgspec.to_builtins(found.card), CARDS[request.target.kind])
    return Answer(card=msgspec.to_builtins(card), defaults=_defaults(config))


def _defaults(config: Any) -> dict[str, Any]:
    """Return the defaults of a configuration; every field must have one that fits its type."""
    if config is None:
        return {}
    if not (isinstance(config, type) and issubclass(config, msgspec.Struct)):
        raise LraError("its Config is no msgspec.Struct; derive it from that of the contract")
    missing = [field.name for field in msgspec.structs.fields(config) if field.required]
    if missing:
        raise LraError(f"its Config has no default for {', '.join(missing)}; give every field one")
    plain = _plain_values(config())
    _validated("Config", plain, config)
    return plain


def _validated(what: str, data: Any, kind: type[_Value]) -> _Value:
    """Convert data to its type, which Python does not enforce; the error of a value that does not
    fit names its place."""
    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError as error:
        words = " ".join(why_invalid(error, data, kind).split())
        raise LraError(f"in its {what}, {words}; mend it there") from error


def _load(target: Target) -> Any:
    """Load a module; other people's mechanisms need an adapter, imported by name since it needs
    torch."""
    if target.kind == "mechanism" and not target.ours:
        return importlib.import_module("lra.adapters.adapt").load(target)
    return loading.load(target)


def _configure(config: Any, changes: dict[str, Any]) -> Answer:
    known = () if config is None else config.__struct_encode_fields__
    for field in changes:
        if field not in known:
            return Answer(unknown=field)
    if config is None:
        return Answer(config={})
    try:
        return Answer(config=_plain_values(msgspec.convert(changes, config)))
    except msgspec.ValidationError as error:
        return Answer(problem=" ".join(why_invalid(error, changes, config).split()))
    except LraError as error:
        return Answer(problem=named_line(error))


def _plain_values(config: Any) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(config, order="sorted")
    return plain


def main() -> None:
    """Answer requests from standard input until it closes."""
    # Output of an imported module must not come between the answers.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb", buffering=0)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    for line in sys.stdin.buffer:
        request = msgspec.json.decode(line, type=Request)
        answers.write(msgspec.json.encode(answer_request(request)) + b"\n")


if __name__ == "__main__":
    main()
