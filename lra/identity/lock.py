"""The lock: sources whose behaviour was proved to be that of their versions, and its digests."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import msgspec

from lra.core.errors import LraError, system_reason
from lra.core.hashing import value_hash
from lra.core.protocol import Frozen
from lra.engine.machine.host import machine
from lra.engine.machine.provenance import command_output, library_version
from lra.identity.sources import Units

FILE = Path("results/identity/lock.json")
SCHEMA = 1


class Accepted(Frozen, frozen=True):
    """The reason why a changed function needs no case that enters it."""

    reason: str
    code: str
    """Hash by `code_of`: another edit of the same function is not accepted."""


class Lock(Frozen, frozen=True, kw_only=True):
    """Results of the last check."""

    schema: int = SCHEMA
    accepted: dict[str, Accepted] = {}
    """Accepted edits, by function."""
    digests: dict[str, dict[str, str]] = {}
    """Digests by toolchain, since bits are the same only within one, and by case; made by
    `digest_of`."""
    blind: list[str] = []
    """Functions that no case enters."""
    files: dict[str, str] = {}
    """Hash of each watched file: an unchanged one need not be parsed."""
    sources: dict[str, str] = {}
    """Hash of each unit, by name."""
    versions: dict[str, int] = {}
    """Versions of features that were bumped."""


def read(root: Path) -> Lock:
    """Return the lock of a checkout; raises `LraError` where it cannot be read."""
    try:
        return _decode((root / FILE).read_bytes())
    except FileNotFoundError:
        raise LraError(
            f"there is no '{FILE}' here; run this in a clone, and restore it with git checkout"
        ) from None
    except OSError as error:
        raise LraError(
            f"'{FILE}' cannot be read: {system_reason(error)}; mend its permissions"
        ) from error


def read_at_commit(root: Path, commit: str) -> Lock:
    """Return the lock of a commit; raises `LraError` where it cannot be read."""
    text = command_output("git", "-C", str(root), "show", f"{commit}:{FILE}")
    if text is None:
        raise LraError(f"commit {commit[:9]} has no '{FILE}'; name a later one")
    return _decode(text.encode())


def _decode(data: bytes) -> Lock:
    try:
        if (newer := msgspec.json.decode(data, type=_Schema).schema) > SCHEMA:
            raise LraError(
                f"'{FILE}' is of a newer version (schema {newer}, this one reads {SCHEMA}); "
                "update this checkout"
            )
        return msgspec.json.decode(data, type=Lock)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise LraError(
            f"'{FILE}' is damaged: {error}; restore it with git checkout, in a merge with "
            "git checkout --ours"
        ) from error


def write(root: Path, lock: Lock) -> None:
    """Write the lock atomically, one entry a line."""
    file = root / FILE
    temporary = file.with_name(f"{file.name}.{os.getpid()}.tmp")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        compact = msgspec.json.encode(lock, order="sorted")
        temporary.write_bytes(msgspec.json.format(compact, indent=1) + b"\n")
        temporary.replace(file)
    except OSError as error:
        raise LraError(
            f"'{FILE}' cannot be written: {system_reason(error)}; make room for it"
        ) from error


def code_of(name: str, now: Units) -> str:
    """Return the hash of a function as it is now, and of the names that its file assigns."""
    own = {
        other: unit.hash
        for other, unit in now.items()
        if other == name
        or (other.startswith(f"{name.partition(':')[0]}:") and not unit.is_function)
    }
    return value_hash(own)


def toolchain() -> str:
    """Return the toolchain that bits depend on besides the code: processor, its instructions,
    libraries."""
    libraries = {
        name: library_version(name) for name in ("torch", "numpy", "numba", "scipy", "pillow")
    }
    parts = [machine("cpu").processor, _instructions(), platform.python_version(), libraries]
    return f"{machine('cpu').name} {value_hash(parts)[:12]}"


def _instructions() -> str:
    """Instruction sets of the processor, by which libraries choose their kernels."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    flags = (line.partition(":")[2] for line in lines if line.startswith(("flags", "Features")))
    return value_hash(sorted(next(flags, "").split()))


class _Schema(msgspec.Struct):
    schema: int
