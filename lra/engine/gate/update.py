"""Update of a baseline: the figures of a check, and the noise of times."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from lra.core.catalogue import expand
from lra.core.errors import UsageError
from lra.core.records import FAILED
from lra.engine.gate import check
from lra.engine.gate.baselines import Baselines, Noise, Reason
from lra.engine.gate.cell_keys import time_key
from lra.engine.gate.figures import figures
from lra.engine.gate.revision import HERE, HOME
from lra.engine.gate.times import TimeComparison
from lra.engine.machine.host import machine
from lra.engine.machine.provenance import checkout
from lra.engine.plan.spec import CheckSpec
from lra.engine.process.run_jobs import Watch
from lra.report.words import count
from lra.verdict.slowdown import calibrated_margin, log_deviation

CALIBRATED = ("sdpa", "linear", "bigbird")
"""Mechanisms whose times calibrate the noise of a machine: one product, many small ones,
gathers."""


def update(
    spec: CheckSpec, reason: str, *, watch: Watch, log: Callable[[str], None]
) -> tuple[Baselines, str]:
    """Measure the figures of a check and make them this machine's baseline.

    Returns the baseline, and why nothing was written: a mechanism broke a law, a cell failed or
    left no record. Raises `LraError` for an empty reason and as a check does.
    """
    if not reason.strip():
        raise UsageError("--reason is empty; say why the baseline changes, for its reviewer")
    baseline = Baselines(spec.baselines, machine(spec.device).name)
    targets = expand("mechanism", spec.mechanisms or ("all",))
    records, unread = check.measure(spec, targets, quality=not spec.deterministic, watch=watch)
    bad = [
        record.cell.mechanism.name  # type: ignore[union-attr]
        for record in records
        if record.status in FAILED or any(f.verdict == "failed" for f in record.findings)
    ]
    if bad:
        return baseline, f"{count(len(bad), 'cell')} failed or broke a law ({_listed(bad)})"
    if unread:
        return baseline, f"{count(unread, 'cell')} ended without a record that can be read"
    commit, _ = checkout(HOME)
    taken = tuple(target.name for target in targets)
    why = Reason(f"{datetime.now(UTC):%Y-%m-%d}", commit or "", taken, reason.strip())
    baseline.write(figures(records), why)
    if not spec.deterministic:
        # Slowest, so last: if interrupted, the figures are already saved.
        baseline.write_noise(_calibrate(spec, log))
    return baseline, ""


def _listed(names: list[str]) -> str:
    return ", ".join(sorted(set(names)))


def _calibrate(spec: CheckSpec, log: Callable[[str], None]) -> dict[str, Noise]:
    """Time one build against itself, in pairs, and return the noise of its times by cell."""
    changes = TimeComparison((HERE, HERE), spec.device, None, {}, log).changes(CALIBRATED)
    return {
        time_key(line.after.row): Noise(
            round(spread, 4), round(calibrated_margin(line.change), 4), line.change.pairs
        )
        for line in changes.lines
        if line.quantity.name == "time" and (spread := log_deviation(line.change)) is not None
    }
