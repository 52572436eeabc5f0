"""`lra identity`: whether records still stand for what the code does."""

from __future__ import annotations

import sys
from datetime import date
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lra.cli import flags
from lra.cli.echo import echo
from lra.cli.exit_codes import REGRESSION
from lra.core import versions
from lra.core.errors import UsageError, unknown_name

if TYPE_CHECKING:
    from lra.identity.check import Check

REASON = click.option("--reason", required=True, help="Why, in a line that a reviewer reads.")


@click.group("identity", short_help="Whether records still stand for what the code does.")
def command() -> None:
    """Hold the code against the versions that records carry.

    A record holds versions of the features it depends on, no hash of our sources. After an edit
    `check` runs small cases on the code and compares them to the last bit with what they gave
    before. Where all are equal the edit makes nothing due.
    """


@command.command("check")
@click.option(
    "--since",
    metavar="REV",
    help="Trust the lock of this branch or commit, and none that came after. Writes nothing.",
)
def check(since: str | None) -> int:
    """Say whether edits since the lock changed behaviour; exit code 1 where they did.

    untouched: no watched function changed. kept: all cases are bit-equal, and enter every changed
    function; the lock is updated. unseen: a changed function is entered by no case. changed: a case
    moved, and its feature wants a bump.
    """
    from lra.engine.gate.revision import merge_base
    from lra.identity.check import Check

    one = Check(tell=_progress, commit="" if since is None else merge_base(since))
    if not one.is_untouched:
        one.run()
    return _told(one, lock=since is None)


@command.command("accept")
@click.argument("functions", nargs=-1, required=True)
@REASON
def accept(functions: tuple[str, ...], reason: str) -> int:
    """Accept changed FUNCTIONS that no case enters, such as one that only a GPU reaches."""
    from lra.identity.check import Check

    if not reason.strip():
        raise UsageError("--reason is empty; say why no case is needed")
    one = Check()
    known = {*one.units, *one.lock.sources, *chain.from_iterable(one.lock.digests.values())}
    likely = [name for name, unit in one.units.items() if unit.is_function]
    for function in functions:
        if function not in known:
            raise unknown_name("function or case", function, likely)
    one.accept(functions, reason)
    echo("accepted; now: python -m lra identity check")
    return 0


@command.command("bump")
@click.argument("features", nargs=-1, required=True)
@REASON
def bump(features: tuple[str, ...], reason: str) -> int:
    """Give FEATURES their next versions: cells that use them become due, no others."""
    from lra.identity.check import Check

    if not reason.strip():
        raise UsageError("--reason is empty; say why the behaviour changed")
    one = Check(tell=_progress)
    # A case is named for its feature; no record holds a feature that the lock does not know.
    cases = chain.from_iterable(one.lock.digests.values())
    known = {case.partition(",")[0] for case in cases} | {"time/cuda", "train/cuda"}
    for feature in features:
        if feature not in known:
            raise unknown_name("feature", feature, known)
    one.run()
    moved = one.decide().bumps
    for feature in features:
        number = versions.bump(feature, moved.get(feature, ()), reason)
        none = "; no case moved: if it was not meant, git checkout lra/versions.json"
        echo(f"{feature} is at version {number}{'' if feature in moved else none}")
    one.renew()
    return _told(one)


@command.command("audit")
@click.option(
    "--records", type=click.IntRange(1), default=10, show_default=True, help="How many records."
)
@click.option(
    "--store", type=flags.Folder(Path), help="Folder of records. Default: the committed reference."
)
def audit(records: int, store: Path | None) -> int:
    """Measure some records again, others each day, and compare them to the last bit.

    They come from the committed reference, or from --store. Exit code 1 where a figure differs.
    """
    from lra.identity.audit import audit, draw_records
    from lra.report.words import count
    from lra.store import Store
    from lra.store.reference import reference_records

    known = reference_records() if store is None else Store(store).existing().records()
    drawn = draw_records(known, records, seed=date.today().toordinal())
    differing = 0
    for one in audit(drawn):
        differing += bool(one.differs)
        echo(f"{one.cell} ({one.record}): {', '.join(one.differs) or 'the same'}")
    echo(f"{count(len(drawn), 'record')} measured again, {differing} differ")
    return REGRESSION if differing else 0


def _told(one: Check, *, lock: bool = True) -> int:
    """Print an audit's result, lock it where that is asked for and it passes; return the exit
    code."""
    from lra.report.words import count

    found = one.decide()
    for feature, cases in found.bumps.items():
        echo(f"changed: {feature}, by {'; '.join(cases)}")
    if found.bumps:
        features = " ".join(found.bumps)
        echo(f'if that is meant: python -m lra identity bump {features} --reason "..."')
    for name in found.unseen:
        echo(f"unseen: {name} changed or is gone, and no case shows what that does")
    if found.unseen:
        names = " ".join(found.unseen)
        echo(
            "add a case to lra/identity/cases.py in a commit before the change, or: "
            f'python -m lra identity accept {names} --reason "..."'
        )
    for case, words in found.failures.items():
        echo(f"{case} raises {words}")
    if found.verdict in ("untouched", "kept") and not found.failures:
        due = "no record is due for it"
        if one.lock.versions != versions.current():
            due = "records of the bumped features are due, no others"
        if found.verdict == "kept" and lock:
            one.write()
        echo(f"{found.verdict}: {due}" + (f"; {count(found.cases, 'case')}" if found.cases else ""))
        return 0
    return REGRESSION


def _progress(line: str) -> None:
    if sys.stderr.isatty():
        click.echo(f"\r{line}", nl=False, err=True)
