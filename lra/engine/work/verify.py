"""Tries the laws on a mechanism."""

from __future__ import annotations

from lra.core.cells import VerifyCell
from lra.engine.jobs import Job, Outcome, Progress, Report
from lra.engine.work.mechanism import device, load_mechanism
from lra.verify import kit
from lra.verify.subject import Subject


def run(cell: VerifyCell, job: Job, report: Report) -> Outcome:
    """Try every law in a process of its own; this one only waits, and never computes."""
    device(cell.device)
    mechanism, config = load_mechanism(cell.mechanism, job.mechanism)
    subject = Subject(mechanism, config, cell.form == "full", cell.device, cell.case)
    laws = kit.select(cell.laws, full=subject.full)
    findings = tuple(kit.verify(subject, laws, tell=lambda law: report(Progress(phase=law.name))))
    return Outcome(status="ok", findings=findings, method={"device": cell.device})
