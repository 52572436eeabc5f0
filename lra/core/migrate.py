"""Records of schema 1, whose cells held hashes of the sources that measured and answered."""

from __future__ import annotations

from typing import Any

EARLIER = "earlier/"
"""How features begin whose versions are hashes of sources that nobody can hold against today's."""


def from_schema_1(old: dict[str, Any]) -> dict[str, Any]:
    """Return a record of schema 1 in plain values as one of schema 2; its id stays.

    Its hashes become versions, so that cells of different sources stay different cells, and none
    of them is one of today's. Raises `KeyError` or `TypeError` for what is no record.
    """
    cell = dict(old["cell"])
    versions = {"measuring": cell.pop("measure_hash"), "declared": cell.pop("declared_hash", "")}
    if "mechanism" in cell:
        cell["mechanism"] = dict(cell["mechanism"])
        versions["mechanism"] = cell["mechanism"].pop("hash")
    if "data" in cell and cell["data"].get("source", "generated") == "generated":
        cell["data"] = dict(cell["data"])
        versions["data"] = cell["data"].pop("hash")
    cell["versions"] = {f"{EARLIER}{name}": hashed for name, hashed in versions.items() if hashed}
    return {**old, "schema": 2, "cell": cell}
