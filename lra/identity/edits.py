"""Edits that no check has looked at, by the files of a clone."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from lra.core.hashing import file_hash, value_hash
from lra.identity import lock as locks
from lra.identity.sources import hashes, units_of, watched


def unchecked_edits(root: Path) -> dict[str, str]:
    """Return the hash of each watched file that differs from the lock's, committed or not; none
    outside a clone.

    Raises `LraError` where there is no lock to compare with.
    """
    if not (root / ".git").exists():
        return {}
    lock, there = locks.read(root), watched(root)
    known: dict[str, dict[str, str]] = defaultdict(dict)
    for unit, hashed in lock.sources.items():
        known[unit.partition(":")[0]][unit] = hashed
    found = {}
    for name in sorted(known.keys() | there.keys()):
        now: dict[str, str] = {}
        if name in there:
            if (hashed := file_hash(there[name])) == lock.files.get(name):
                continue
            try:
                now = hashes(units_of(there[name], name))
            except (SyntaxError, ValueError):
                # Half written: cells that import it will fail by themselves.
                now = {name: hashed}
        if now != known[name]:
            found[name] = value_hash(now)
    return found
