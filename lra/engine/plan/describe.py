"""Declarations of mechanisms, positions and tasks, and their full configurations; no torch here.

Answers come from one child process that imports just the modules asked for, and are kept under the
cache folder by the hash of the module's source.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
import weakref
import zlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, cast

import msgspec

from lra.core.cards import AttentionCard, PositionCard, TaskCard, cycle_card
from lra.core.catalogue import Target
from lra.core.errors import LraError, UsageError, unknown_name
from lra.core.hashing import source_hash, value_hash
from lra.core.paths import opened
from lra.engine.plan.introspect import CARDS, Answer, Request
from lra.engine.process.launch import environment
from lra.engine.process.signals import signal_name

Card = AttentionCard | PositionCard | TaskCard


@dataclass(frozen=True)
class Description:
    """Declaration of one module."""

    target: Target
    card: Card | None
    """Card of the module; None where it is unavailable."""
    defaults: dict[str, Any]
    """Default configuration, in plain values."""
    unavailable: str | None
    """Reason why it cannot be imported; None where it can."""
    members: tuple[Description, ...] = ()
    """Descriptions of the mechanisms of a cycle, each configured by itself; the defaults of the
    whole are by their names."""
    _describer: Describer = field(kw_only=True, repr=False, compare=False)

    def configure(self, changes: Mapping[str, Any], where: str) -> dict[str, Any]:
        """Return the full configuration with these fields changed, checked, in plain values.

        Raises `UsageError`, beginning with `where`, for an unknown field or a value that does not
        fit, and for a module that is unavailable.
        """
        if self.unavailable is not None:
            raise self._unavailable(self.unavailable)
        if not changes:
            return dict(self.defaults)
        found = self._describer.ask(Request(self.target, dict(changes)))
        if found.unknown is not None:
            if not self.defaults:
                raise UsageError(f"{where}: there is nothing to configure; leave it out")
            raise UsageError(f"{where}: {unknown_name('field', found.unknown, self.defaults)}")
        if found.unavailable is not None:
            raise self._unavailable(found.unavailable)
        if found.config is None:
            raise UsageError(f"{where}: {found.problem}; fix the value")
        return found.config

    def _unavailable(self, why: str) -> UsageError:
        return UsageError(f"{self.target.kind} '{self.target.name}' is unavailable: {why}")


PATIENCE = 120.0
"""Seconds that importing a module and reading its card may take."""


PARTING = 2.0
"""Seconds that the child process may take to end."""


class Describer:
    """Descriptions of modules; the child process starts with the first question that the cache
    cannot answer.

    The child ends with this object, or with this process.
    """

    def __init__(self, cache: Path, *, patience: float = PATIENCE) -> None:
        self._folder = cache / "descriptions"
        self._patience = patience
        self._child: subprocess.Popen[bytes] | None = None
        self._hung: dict[Target, Answer] = {}
        """Requests without an answer in time; they are not tried again."""

    def describe(self, target: Target) -> Description:
        """Return a module's declarations; for one that cannot be imported, why.

        Raises `UsageError` for a name from the user that the module lacks.
        """
        if target.members:
            return self._describe_cycle(target)
        found = self.ask(Request(target))
        if found.misnamed and not target.by_name:
            raise UsageError(f"{target.kind} '{target.name}': {found.unavailable}")
        card = None
        if found.card is not None:
            card = cast(Card, msgspec.convert(found.card, CARDS[target.kind]))
        return Description(target, card, found.defaults, found.unavailable, _describer=self)

    def _describe_cycle(self, target: Target) -> Description:
        """Return the declaration of several mechanisms in turns: together they can do what each of
        them can."""
        members = tuple(map(self.describe, target.members))
        cards = [one.card for one in members if isinstance(one.card, AttentionCard)]
        return Description(
            target,
            cycle_card(cards) if len(cards) == len(members) else None,
            {one.target.name: one.defaults for one in members},
            next((one.unavailable for one in members if one.unavailable is not None), None),
            members,
            _describer=self,
        )

    def ask(self, request: Request) -> Answer:
        """Return the answer to a request, from the cache if it is there."""
        key = _key(request)
        file = None if key is None else self._folder / f"{key}.json"
        if file is not None and (kept := _kept(file)) is not None:
            return kept
        answer = self._ask_child(request)
        # A package that is missing today may be installed tomorrow.
        if file is not None and answer.unavailable is None:
            _keep(file, msgspec.json.encode(answer))
        return answer

    def _ask_child(self, request: Request) -> Answer:
        if request.target in self._hung:
            return self._hung[request.target]
        child = self._running()
        assert child.stdin is not None and child.stdout is not None
        line = b""
        with suppress(BrokenPipeError):
            child.stdin.write(msgspec.json.encode(request) + b"\n")
            child.stdin.flush()
            # An answer is written at once, so that its first byte announces a whole line.
            ready, _, _ = select.select([child.stdout], [], [], self._patience)
            if not ready:
                self._child = None
                child.kill()
                late = Answer(unavailable=f"importing it takes more than {self._patience:g} s")
                return self._hung.setdefault(request.target, late)
            line = child.stdout.readline()
        if line.endswith(b"\n"):
            return msgspec.json.decode(line, type=Answer)
        self._child = None
        code = child.wait()
        how = f"by {signal_name(-code)}" if code < 0 else f"with exit code {code}"
        return Answer(unavailable=f"importing it ends Python {how}")

    def _running(self) -> subprocess.Popen[bytes]:
        if self._child is None:
            try:
                self._child = subprocess.Popen(
                    [sys.executable, "-m", "lra.engine.plan.introspect"],
                    env=environment(),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                )
            except OSError as error:
                raise LraError(f"cannot start Python to read modules: {error.strerror}") from error
            weakref.finalize(self, _end, self._child)
        return self._child


def _end(child: subprocess.Popen[bytes]) -> None:
    """Let the child see that no more questions come; kill it where it hangs in an import."""
    for stream in (child.stdin, child.stdout):
        if stream is not None:
            with suppress(BrokenPipeError):
                stream.close()
    try:
        child.wait(timeout=PARTING)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def _key(request: Request) -> str | None:
    """Hash of all that an answer depends on; None where the source is out of reach.

    The source of somebody's installed package is not looked for: that would import the package.
    """
    target = request.target
    if not target.ours and not target.module.endswith(".py"):
        return None
    try:
        return value_hash([request, source_hash(target.file), _own_hash()])
    except (OSError, ValueError):
        return None


@cache
def _own_hash() -> str:
    introspect = Path(__file__).with_name("introspect.py")
    ours = introspect.parents[2]
    # An answer has the form of today's cards.
    parts = (ours / "adapters" / "adapt.py", ours / "core" / "cards.py")
    return source_hash(introspect, *parts, leave_out=("lra.core",))


def _kept(file: Path) -> Answer | None:
    """Return the answer in a cache file; None where there is none, or not the one that was
    written."""
    with suppress(OSError, msgspec.MsgspecError), opened(file) as stream:
        seal, _, data = (stream.read() or b"").partition(b"\n")
        if seal == _seal(data):
            return msgspec.json.decode(data, type=Answer)
    return None


def _keep(file: Path, data: bytes) -> None:
    """Write a cache file atomically; a cache that cannot be written only costs time."""
    temporary = file.with_name(f"{file.name}.{os.getpid()}.tmp")
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(_seal(data) + b"\n" + data)
        temporary.replace(file)


def _seal(data: bytes) -> bytes:
    """Checksum of an answer: with another digit in it, a run would be of another configuration."""
    return b"%08x" % zlib.crc32(data)
