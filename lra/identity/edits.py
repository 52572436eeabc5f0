"""Edits of watched files that no check has looked at, by what lies in a clone."""

from __future__ import annotations

from pathlib import Path

from lra.core.hashing import file_hash, value_hash
from lra.engine.provenance import output
from lra.identity import lock as locks
from lra.identity.sources import WATCHED, hashes, is_watched, units_of


def unchecked(root: Path) -> dict[str, str]:
    """Return the hash of each watched file that has uncommitted edits which the lock does not know;
    none outside a clone.

    Raises `LraError` where there is no lock to hold them against.
    """
    if not (root / ".git").exists():
        return {}
    git = ("git", "-C", str(root))
    changed = output(*git, "diff", "--name-only", "-z", "--no-renames", "HEAD", "--", *WATCHED)
    new = output(*git, "ls-files", "--others", "--exclude-standard", "-z", "--", *WATCHED)
    files = {*(changed or "").split("\0"), *(new or "").split("\0")}
    edited = {name: root / name for name in sorted(files) if is_watched(name)}
    if not edited:
        return {}
    known = locks.read(root).sources
    found = {}
    for name, file in edited.items():
        try:
            now = hashes(units_of(file, name)) if file.is_file() else {}
        except (SyntaxError, ValueError):
            # Half written: it is for those cells to fail that import it.
            now = {name: file_hash(file)}
        if now != {unit: one for unit, one in known.items() if unit.startswith(f"{name}:")}:
            found[name] = value_hash(now)
    return found
