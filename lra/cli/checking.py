"""A check under way: what it holds against a baseline and a revision, the surest first."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lra.core.catalogue import Target
    from lra.core.cells import Device
    from lra.core.records import Record
    from lra.engine.gate.baselines import Baselines
    from lra.engine.jobs import Job
    from lra.store import Store
    from lra.verdict.baseline import Judgement

QUICK = ("sdpa", "linear", "bigbird", "s4d")
"""What a quick check looks at unless told: one of each kind of sum."""
QUICK_PAIRS, QUICK_TIMED = 5, 2


class Check:
    """What is found goes into `judged` and `notes` at once, and is there whatever ends it."""

    def __init__(
        self,
        *,
        baseline: Baselines,
        device: Device,
        store: Path,
        quick: bool,
        quiet: bool,
        judged: list[Judgement],
        notes: list[str],
    ) -> None:
        self.baseline, self.device, self.store = baseline, device, store
        self.quick, self.quiet = quick, quiet
        self.judged, self.notes = judged, notes

    def run(self, impls: Sequence[str], since: str | None, *, timed: bool, quality: bool) -> None:
        """Look at what was asked for, in the order of what is surest."""
        from lra.core.catalogue import expand
        from lra.engine.gate.revision import last_commit

        targets = expand("mechanism", impls or ("all",))
        self._told_what_is_gone(targets)
        if since is not None:
            targets = self._reached(targets, since)
        if self.quick and not impls:
            targets = self._few(targets)
        if not targets:
            return
        whole = quality and not impls and since is None
        self._against_baseline(targets, quality=quality, whole=whole)
        revision = since or last_commit()
        if timed and revision is None:
            self._inconclusive("time", "no revision to time against here; name one with --since")
        elif timed and revision is not None:
            self._against_revision([target.name for target in targets], revision)

    def _told_what_is_gone(self, targets: list[Target]) -> None:
        from lra.core.catalogue import entry_point_names, names
        from lra.report.words import listing

        known = {
            *names("mechanism"),
            *entry_point_names("mechanism"),
            *(one.name for one in targets),
        }
        # A peer's name has a colon.
        gone = [n for n in self.baseline.names() if n.isidentifier() and n not in known]
        if gone:
            self.notes.append(
                f"In the baseline but not a known mechanism: {listing(gone)}; delete the file of "
                "any that is gone."
            )

    def _reached(self, targets: list[Target], since: str) -> list[Target]:
        from lra.engine.gate.affected import affected_mechanisms, hash_sources
        from lra.engine.gate.revision import HOME, merge_base, work_tree
        from lra.report.words import listing

        with work_tree(merge_base(since)) as tree:
            found = affected_mechanisms(hash_sources(tree), hash_sources(HOME))
        names = [target.name for target in targets if target.name in found]
        self.notes.append(f"Changes since {since} reach {listing(names) or 'no mechanism'}.")
        # Other people's mechanisms are not in the revision: always checked.
        return [target for target in targets if target.name in found or not target.ours]

    def _few(self, targets: list[Target]) -> list[Target]:
        from lra.report.words import count, listing

        if len(targets) <= len(QUICK):
            return targets
        few = [target for target in targets if target.name in QUICK] or targets[: len(QUICK)]
        self.notes.append(
            f"A quick check looks at {listing([target.name for target in few])}; "
            f"{count(len(targets) - len(few), 'mechanism')} not looked at."
        )
        return few

    def _against_baseline(self, targets: list[Target], *, quality: bool, whole: bool) -> None:
        from lra.engine.gate.figures import figures
        from lra.report.words import count
        from lra.verdict.baseline import judge

        # What cannot be read is told before minutes are spent.
        before = {target.name: self.baseline.figures(target.name) for target in targets}
        if not self.baseline.exists():
            self._inconclusive("baseline", no_baseline(self.baseline.machine))
        records, unread = measure(
            targets, self.device, self.store, quality=quality, quiet=self.quiet
        )
        found = figures(records)
        for name in sorted(before.keys() | found.keys()):
            self.judged += judge(name, before.get(name, {}), found.get(name, {}), whole=whole)
        if unread:
            self._inconclusive("baseline", f"{count(unread, 'cell')} left no record; check again")

    def _against_revision(self, names: list[str], revision: str) -> None:
        from lra.cli.echo import on_stderr
        from lra.cli.times import Times
        from lra.engine.gate.affected import changed_mechanisms, hash_sources
        from lra.engine.gate.interleave import differences
        from lra.engine.gate.revision import HERE, HOME, build, merge_base, work_tree
        from lra.report.words import listing

        told = on_stderr(quiet=self.quiet)
        with work_tree(merge_base(revision)) as tree:
            before, after = hash_sources(tree), hash_sources(HOME)
            if before.timing != after.timing:
                why = f"the code that times was changed since {revision}: figures of another kind"
                self._inconclusive("time", why)
                return
            if new := [name for name in names if name not in before.mechanisms]:
                self.notes.append(f"Not in {revision}, so not timed: {listing(new)}.")
            names = [n for n in names if n in changed_mechanisms(before, after) and n not in new]
            if not names and not new:
                self.notes.append(
                    f"No mechanism's sources differ from {revision}: nothing to time."
                )
            if not names:
                return
            if self.quick and len(names) > QUICK_TIMED:
                left = listing(names[QUICK_TIMED:])
                self.notes.append(f"A quick check times {QUICK_TIMED}; not timed: {left}.")
                names = names[:QUICK_TIMED]
            sides = (build(revision, tree, told), HERE)
            if other := differences(sides):
                self._inconclusive("time", other)
                return
            pairs = QUICK_PAIRS if self.quick else None
            noise = self.baseline.noise()
            if not noise:
                self.notes.append(
                    "How times repeat on this class of machine is not known, so noise alone may "
                    "fail the check; measure it with python -m lra baseline update."
                )
            times = Times(sides, self.device, pairs, noise, told)
            judged, could_see = times.judged(names)
        self.judged += judged
        self.notes += could_see

    def _inconclusive(self, figure: str, why: str) -> None:
        from lra.verdict.baseline import Judgement

        self.judged.append(Judgement("", "", figure, "inconclusive", why))


def no_baseline(machine: str) -> str:
    """Return what to do where there is no baseline for a class of machine."""
    return (
        f"no baseline for machines of class {machine}; take one with "
        "python -m lra baseline update --reason '...'"
    )


def measure(
    targets: Sequence[Target],
    device: Device,
    store: Path,
    *,
    quality: bool,
    quiet: bool,
) -> tuple[list[Record], int]:
    """Run the cells of a check and return their records, in the order of the plan, and how many
    cells have none that can be read.

    Trainings for accuracy take minutes and are seeded: those that the store has of this code are
    not repeated.
    """
    from lra.cli.cell_labels import with_labels
    from lra.cli.progress import watcher
    from lra.cli.run_all import run_jobs
    from lra.engine.gate.revision import HOME
    from lra.engine.machine.host import cache_folder
    from lra.engine.plan.check import plan_check
    from lra.engine.process.launch import ForkServer
    from lra.identity.edits import unchecked_edits
    from lra.store import Store

    records = Store(store)
    with ForkServer() as server:
        asked = [target.reference for target in targets]
        place, edits = str(cache_folder()), unchecked_edits(HOME)
        jobs = with_labels(plan_check(asked, device, place, quality=quality, edits=edits))
        found = run_jobs(
            records,
            server,
            jobs,
            due=lambda job: not _has(records, job),
            watch=lambda due: watcher(due, quiet=quiet),
            prune=False,
        )
    return [record for _, record in found], len(jobs) - len(found)


def _has(store: Store, job: Job) -> bool:
    from lra.core.cells import QualityCell
    from lra.engine.gate.figures import CURVES

    if not isinstance(job.cell, QualityCell) or job.cell.scale == CURVES:
        return False
    record = store.load(job.cell.id)
    return record is not None and record.status == "ok"
