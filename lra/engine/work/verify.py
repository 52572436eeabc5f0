"""Trial of the laws on a mechanism."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from importlib.metadata import version

import msgspec

from attention_impls.contract import Layer
from lra.adapters.adapt import assumptions
from lra.core.cells import VerifyCell
from lra.core.errors import LraError
from lra.core.findings import Finding
from lra.engine.jobs import Job, Outcome, Progress, Report
from lra.engine.machine.provenance import distribution_of
from lra.engine.work.mechanism import device, load_mechanism
from lra.verify import kit
from lra.verify.isolation import run_isolated
from lra.verify.subject import Subject


def run(cell: VerifyCell, job: Job, report: Report) -> Outcome:
    """Try every law in a process of its own; the present process only waits, and never computes.

    It does not even look for a GPU: after a look that touches one, no fork could use it.
    """
    found = run_isolated(partial(_device_missing, cell.device), kit.TIMEOUT)
    if isinstance(found, Finding) and found.detail:
        raise LraError(found.detail)
    mechanism, config = load_mechanism(cell.mechanism, job.mechanism)
    subject = Subject(mechanism, config, cell.form == "full", cell.device, cell.case)
    laws = kit.select(cell.laws, full=subject.full)
    findings = tuple(kit.verify(subject, laws, tell=lambda law: report(Progress(phase=law.name))))
    method = {
        "device": cell.device,
        "card": msgspec.to_builtins(subject.card),
        "assumed": assumptions(mechanism, config),
        "untried": tuple(_why_untrained(subject, findings)),
        **_package(mechanism),
    }
    return Outcome(status="ok", findings=findings, method=method)


def _why_untrained(subject: Subject, findings: Sequence[Finding]) -> Iterator[str]:
    """Reason why a mechanism was not tried in training; one that hangs is not asked."""
    if subject.is_ours or subject.only is not None:
        return
    if all(finding.ending != "timeout" for finding in findings):
        found = run_isolated(partial(_laws_asked, subject), kit.TIMEOUT)
        if isinstance(found, Finding) and found.detail:
            yield found.detail


def _laws_asked(subject: Subject) -> Finding:
    return Finding(law="training", verdict="reported", detail=subject.untrained)


def _device_missing(name: str) -> Finding:
    """Finding that says whether the device is missing, and why."""
    try:
        device(name)
    except LraError as error:
        return Finding(law="device", verdict="reported", detail=str(error))
    return Finding(law="device", verdict="held")


def _package(mechanism: type[Layer]) -> dict[str, str]:
    """Installed package of a class of somebody else's, and its version."""
    stranger = getattr(mechanism, "stranger", None)
    if stranger is None:
        return {}
    name = stranger.package or distribution_of(mechanism.__module__)
    return {"package": f"{name} {version(name)}"} if name else {}
