"""Tries the laws on a mechanism."""

from __future__ import annotations

from importlib.metadata import version

from attention_impls.contract import Layer
from lra.adapters.adapt import assumed
from lra.core.cells import VerifyCell
from lra.engine.jobs import Job, Outcome, Progress, Report
from lra.engine.provenance import distribution_of
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
    method = {"device": cell.device, "assumed": assumed(mechanism, config), **_package(mechanism)}
    return Outcome(status="ok", findings=findings, method=method)


def _package(mechanism: type[Layer]) -> dict[str, str]:
    """The installed package that a class of somebody else's comes from, and its version."""
    stranger = getattr(mechanism, "stranger", None)
    if stranger is None:
        return {}
    name = stranger.package or distribution_of(mechanism.__module__)
    return {"package": f"{name} {version(name)}"} if name else {}
