"""Public packages that `--impl peer:NAME` reaches, one TOML file each; nothing is imported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from lra.core.errors import LraError, unknown_name

_FOLDER = Path(__file__).resolve().parents[1] / "peers"

PREFIX = "peer:"
"""The name of a peer begins with it."""


class Peer(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One class of a public package."""

    package: str
    """The distribution that the `peers` extra installs."""
    reference: str
    """`package.module:Class`."""
    settings: dict[str, Any] = {}
    """In place of the adapter's and the constructor's defaults; `$width` and its like stand for
    what the model decides."""
    trials: tuple[dict[str, Any], ...] = ()
    """Settings that the conformance kit tries beside these: small blocks, whose borders short
    inputs cross."""
    claims: dict[str, Any] = {}
    """Capabilities that its documentation claims or denies, in place of what its signature
    offers."""
    note: str = ""
    """A reader has to know this about the use of it."""
    counterpart: str = ""
    """Our mechanism of the same idea; empty where there is none."""
    matching: dict[str, str] = {}
    """Settings of our counterpart and of this that are equal where both do the same work; a dot
    leads into a setting that is a table."""
    requires: dict[str, Any] = {}
    """Settings of our counterpart without which the two do other work, and which this lacks."""
    multiples: dict[str, int] = {}
    """Its settings that a length is a multiple of, each so many times: it needs no more padding."""
    more: str = ""
    """Its work besides, whatever is set: if ours is fast enough beside it, that may be why."""
    less: str = ""
    """Its omissions, whatever is set: where ours is too slow beside it, that may be why."""
    lighter: bool = False
    """Whether it has less to compute than our counterpart, which is then asked for no less than its
    time."""


def names() -> list[str]:
    """Return the names of all peers, with their prefix, sorted."""
    return sorted(PREFIX + file.stem for file in _FOLDER.glob("*.toml"))


def read(name: str) -> Peer:
    """Return the peer of a name with its prefix.

    Raises `UsageError` with the nearest name for one that does not exist.
    """
    if name not in names():
        raise unknown_name("peer", name, names())
    return _read(_FOLDER / f"{name.removeprefix(PREFIX)}.toml")


def _read(file: Path) -> Peer:
    try:
        peer = msgspec.toml.decode(file.read_bytes(), type=Peer)
    except msgspec.MsgspecError as error:
        raise LraError(f"{file.name}: {error}; fix the file") from error
    for key in ("matching", "requires", "multiples", "lighter", "more", "less"):
        if getattr(peer, key) and not peer.counterpart:
            raise LraError(f"{file.name}: {key} needs a counterpart; name one, or leave it out")
    return peer
