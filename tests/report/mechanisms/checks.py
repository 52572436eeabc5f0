"""Made-up checks of mechanisms, as `lra verify` records them."""

from __future__ import annotations

from typing import Any

import msgspec

from lra.core.cells import VerifyCell
from lra.core.findings import Finding, Verdict
from lra.core.records import Failure, Record
from report.sample import HERE, PROVENANCE, mechanism


def check(name: str, started: str, verdicts: dict[str, Any], **fields: Any) -> Record:
    source = fields.pop("source", "a")
    method = fields.pop("method", {})
    status = fields.pop("status", "ok")
    config = fields.pop("config", {})
    cell = VerifyCell(
        machine=fields.pop("machine", HERE),
        torch=fields.pop("torch", "2.13.0"),
        threads=fields.pop("threads", 1),
        versions={"verify": "m", f"mechanism/{name}": source},
        mechanism=mechanism(name, **config),
        form=fields.pop("form", "short"),
        **fields,
    )
    findings = tuple(Finding(law=law, verdict=verdict) for law, verdict in verdicts.items())
    return Record(
        id=cell.id,
        cell=cell,
        status=status,
        failure=None if status == "ok" else Failure(type="X", message="x"),
        started_at=started,
        seconds=1.0,
        findings=findings,
        method=method,
        provenance=PROVENANCE,
    )


def softmax(
    name: str, time: str = "O(n m d)", verdict: Verdict = "held", started: str = "2026"
) -> Record:
    """A check of what says that it is softmax attention, in time that grows so."""
    grown = f"time grows as n^1.90 from 1024 to 2048, claimed: {time}"
    findings = (
        Finding(law="exact_softmax", verdict=verdict),
        Finding(law="time_growth", verdict="reported", detail=grown),
    )
    return msgspec.structs.replace(check(name, started, {}), findings=findings)
