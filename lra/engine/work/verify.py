"""Trial of the laws on a mechanism."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.metadata import version

import msgspec
import torch

from attention_impls.contract import Layer
from lra.adapters.adapt import assumptions
from lra.core.cells import VerifyCell
from lra.core.errors import LraError
from lra.core.findings import Finding
from lra.engine.jobs import Job, Outcome, Progress, Report
from lra.engine.machine.provenance import distribution_of
from lra.engine.work.mechanism import device, load_mechanism
from lra.verify import kit, remarks
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
    subject = Subject(
        mechanism,
        config,
        cell.form == "full",
        cell.device,
        cell.case,
        reference=job.mechanism or cell.mechanism.name,
    )
    no_twin = _asked(partial(remarks.why_not_causal, subject))
    if no_twin:
        subject = subject.claiming({"causal": "no"})
    laws = kit.select(cell.laws, full=subject.full)
    findings = tuple(kit.verify(subject, laws, tell=lambda law: report(Progress(phase=law.name))))
    method = {
        "device": cell.device,
        "card": msgspec.to_builtins(subject.card),
        "assumed": assumptions(mechanism, config),
        "untried": tuple(filter(None, (no_twin, *_remarks(subject, findings)))),
        **_package(mechanism),
    }
    return Outcome(status="ok", findings=findings, method=method)


def _remarks(subject: Subject, findings: Sequence[Finding]) -> Iterator[str]:
    """Yield what no law says of somebody else's class: which keys its causal flag means, and why it
    was not tried in training. One that hangs is not asked."""
    if subject.only is None and all(finding.ending != "timeout" for finding in findings):
        yield _asked(partial(remarks.causal_keys, subject))
        yield _asked(partial(_untrained, subject))


def _untrained(subject: Subject) -> str:
    return subject.untrained


def _asked(question: Callable[[], str]) -> str:
    """Return the answer to a question, asked in a process of its own; empty where there is none."""
    found = run_isolated(partial(_as_finding, question), kit.TIMEOUT)
    return found.detail if isinstance(found, Finding) else ""


def _as_finding(question: Callable[[], str]) -> Finding:
    torch.set_num_threads(1)
    return Finding(law="", verdict="reported", detail=question())


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
