"""Public packages that `--impl peer:NAME` runs, one TOML file each; nothing is imported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from lra.core.errors import LraError, unknown_name

_FOLDER = Path(__file__).resolve().parents[1] / "peers"

PREFIX = "peer:"
"""Prefix of a peer's name."""


class Peer(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One class of a public package."""

    package: str
    """The distribution that the `peers` extra installs."""
    reference: str
    """Reference of the class: `package.module:Class`."""
    settings: dict[str, Any] = {}
    """Settings that replace the adapter's and the constructor's defaults; `$width` and its like
    stand for values that the model decides."""
    trials: tuple[dict[str, Any], ...] = ()
    """Settings that the conformance kit tries besides: small blocks, with borders that short inputs
    cross."""
    claims: dict[str, Any] = {}
    """Capabilities that its documentation claims or denies, in place of those of its signature."""
    note: str = ""
    """Note for readers about this use of it."""
    counterpart: str = ""
    """Our mechanism of the same idea; empty where there is none."""
    matching: dict[str, str] = {}
    """Settings of our counterpart and of this that are equal where both do the same work; a dot
    leads into a setting that is a table."""
    requires: dict[str, Any] = {}
    """Settings of our counterpart, unknown to the peer, with which both do the same work."""
    multiples: dict[str, int] = {}
    """Factors by setting: a length divisible by the setting's value times its factor needs no
    padding."""
    more: str = ""
    """Work that it does besides, whatever the settings: it may be why ours is fast enough."""
    less: str = ""
    """Work that it omits, whatever the settings: it may be why ours is too slow."""
    lighter: bool = False
    """Whether it computes less than our counterpart: ours need then be only as fast."""


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
