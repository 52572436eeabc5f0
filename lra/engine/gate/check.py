"""The check: mechanisms against their baseline and against a revision, the surest figures first."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lra.changes.check_report import Checked
from lra.core.catalogue import Target, entry_point_names, expand, names
from lra.core.cells import QualityCell
from lra.core.errors import UsageError
from lra.core.records import Record
from lra.engine.gate import affected, interleave, revision
from lra.engine.gate.baselines import Baselines
from lra.engine.gate.figures import CURVES, figures
from lra.engine.gate.times import TimeComparison
from lra.engine.jobs import Job
from lra.engine.machine.host import cache_folder, machine
from lra.engine.plan import check as planner
from lra.engine.plan.labels import with_labels
from lra.engine.plan.spec import CheckSpec
from lra.engine.process import launch
from lra.engine.process.run_jobs import Watch, run_jobs
from lra.report.words import count, listing
from lra.store import Store
from lra.verdict.baseline import Judgement, judge

QUICK = ("sdpa", "linear", "bigbird", "s4d")
"""Mechanisms of a quick check, one of each kind of sum."""
QUICK_PAIRS, QUICK_TIMED = 5, 2


class Check:
    """One check. `judged` and `notes` hold the results so far, however it ends."""

    def __init__(self, spec: CheckSpec, *, watch: Watch, log: Callable[[str], None]) -> None:
        self.spec, self.watch, self.log = spec, watch, log
        self.judged: list[Judgement] = []
        self.notes: list[str] = []

    def found(self, stopped: str = "") -> Checked:
        """Return the results so far, and why the check stopped."""
        return Checked(tuple(self.judged), tuple(self.notes), stopped)

    def run(self) -> None:
        """Compare laws, counts and losses, then accuracies, then times.

        Raises `LraError` for a mechanism, revision or device that does not exist, and for a
        baseline that cannot be read.
        """
        spec = self.spec
        if spec.since == "":
            raise UsageError("--since is empty; name a commit, branch or tag, or leave it out")
        baseline = Baselines(spec.baselines, machine(spec.device).name)
        targets = expand("mechanism", spec.mechanisms or ("all",))
        self._note_unknown(baseline, targets)
        if spec.since is not None:
            targets = self._affected(targets, spec.since)
        if spec.quick and not spec.mechanisms:
            targets = self._few(targets)
        if not targets:
            return
        self._compare_with_baseline(baseline, targets)
        if spec.deterministic:
            return
        since = spec.since or revision.last_commit()
        if since is None:
            self._inconclusive("time", "no revision to time against here; name one with --since")
        else:
            self._compare_times(baseline, [target.name for target in targets], since)

    def _note_unknown(self, baseline: Baselines, targets: Sequence[Target]) -> None:
        asked = {target.name for target in targets}
        known = {*names("mechanism"), *entry_point_names("mechanism"), *asked}
        # A peer's name has a colon.
        if gone := [n for n in baseline.names() if n.isidentifier() and n not in known]:
            self.notes.append(
                f"In the baseline but not a known mechanism: {listing(gone)}; delete the file of "
                "any that is gone."
            )

    def _affected(self, targets: Sequence[Target], since: str) -> list[Target]:
        with revision.work_tree(revision.merge_base(since)) as tree:
            found = affected.affected_mechanisms(
                affected.hash_sources(tree), affected.hash_sources(revision.HOME)
            )
        reached = [target.name for target in targets if target.name in found]
        self.notes.append(f"Changes since {since} reach {listing(reached) or 'no mechanism'}.")
        # Other people's mechanisms are not in the revision: always checked.
        return [target for target in targets if target.name in found or not target.ours]

    def _few(self, targets: list[Target]) -> list[Target]:
        if len(targets) <= len(QUICK):
            return targets
        few = [target for target in targets if target.name in QUICK] or targets[: len(QUICK)]
        self.notes.append(
            f"A quick check looks at {listing([target.name for target in few])}; "
            f"{count(len(targets) - len(few), 'mechanism')} not looked at."
        )
        return few

    def _compare_with_baseline(self, baseline: Baselines, targets: Sequence[Target]) -> None:
        spec = self.spec
        # An unreadable file ends the check before minutes are spent.
        before = {target.name: baseline.figures(target.name) for target in targets}
        if not baseline.exists():
            self._inconclusive("baseline", no_baseline(baseline.machine))
        quality = not (spec.deterministic or spec.quick)
        records, unread = measure(spec, targets, quality=quality, watch=self.watch)
        found = figures(records)
        whole = quality and not spec.mechanisms and spec.since is None
        for name in sorted(before.keys() | found.keys()):
            self.judged += judge(name, before.get(name, {}), found.get(name, {}), whole=whole)
        if unread:
            self._inconclusive("baseline", f"{count(unread, 'cell')} left no record; check again")

    def _compare_times(self, baseline: Baselines, asked: list[str], since: str) -> None:
        spec = self.spec
        with revision.work_tree(revision.merge_base(since)) as tree:
            before, after = affected.hash_sources(tree), affected.hash_sources(revision.HOME)
            if before.timing != after.timing:
                why = f"the code that times was changed since {since}: figures of another kind"
                return self._inconclusive("time", why)
            new = [name for name in asked if name not in before.mechanisms]
            changed = affected.changed_mechanisms(before, after)
            timed = [name for name in asked if name in changed and name not in new]
            if new:
                self.notes.append(f"Not in {since}, so not timed: {listing(new)}.")
            if not timed and not new:
                self.notes.append(f"No mechanism's sources differ from {since}: nothing to time.")
            if not timed:
                return None
            if spec.quick and len(timed) > QUICK_TIMED:
                left = listing(timed[QUICK_TIMED:])
                self.notes.append(f"A quick check times {QUICK_TIMED}; not timed: {left}.")
                timed = timed[:QUICK_TIMED]
            sides = (revision.build(since, tree, self.log), revision.HERE)
            if why := interleave.differences(sides):
                return self._inconclusive("time", why)
            noise = baseline.noise()
            if not noise:
                self.notes.append(
                    "How times repeat on this class of machine is not known, so noise alone may "
                    "fail the check; measure it with python -m lra baseline update."
                )
            pairs = QUICK_PAIRS if spec.quick else None
            judged, notes = TimeComparison(sides, spec.device, pairs, noise, self.log).judge(timed)
        self.judged += judged
        self.notes += notes
        return None

    def _inconclusive(self, figure: str, why: str) -> None:
        self.judged.append(Judgement("", "", figure, "inconclusive", why))


def no_baseline(machine: str) -> str:
    """Return the advice for a class of machine without a baseline."""
    return (
        f"no baseline for machines of class {machine}; take one with "
        "python -m lra baseline update --reason '...'"
    )


def measure(
    spec: CheckSpec, targets: Sequence[Target], *, quality: bool, watch: Watch
) -> tuple[list[Record], int]:
    """Run the cells of a check; return their records, in the order of the plan, and the number of
    cells without a readable record.

    Trainings for accuracy take minutes and are seeded: the store's own are not repeated.
    """
    store = Store(spec.store)
    with launch.ForkServer() as server:
        jobs = with_labels(
            planner.plan_check(
                [target.reference for target in targets],
                spec.device,
                str(cache_folder()),
                quality=quality,
                edits=spec.edits,
            )
        )
        found = run_jobs(
            store, server, jobs, due=lambda job: not _is_done(store, job), watch=watch, prune=False
        )
    return [record for _, record in found], len(jobs) - len(found)


def _is_done(store: Store, job: Job) -> bool:
    """Whether a job's training for accuracy is in the store."""
    if not isinstance(job.cell, QualityCell) or job.cell.scale == CURVES:
        return False
    record = store.load(job.cell.id)
    return record is not None and record.status == "ok"
