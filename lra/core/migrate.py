"""Records of schema 1: their cells held hashes of the measuring and answering sources."""

from __future__ import annotations

from typing import Any

EARLIER = "earlier/"
"""Prefix of features with hashes of earlier sources as versions; today's cannot be compared with
them."""


def from_schema_1(old: dict[str, Any]) -> dict[str, Any]:
    """Return a record of schema 1 in plain values as one of schema 2; its id stays.

    Its hashes become versions: cells of different sources stay different, and none equals a cell of
    today. Raises `KeyError` or `TypeError` for a value that is no record.
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
