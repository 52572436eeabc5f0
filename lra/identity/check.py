"""The check: whether edited code still behaves as its versions say. Never imports torch.

Where a watched function changed, all cases run on the code as it is and are compared with the
digests of the lock. For a toolchain that the lock does not know, digests come from the commit that
it was written for.
"""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import Literal

import msgspec
from msgspec.structs import replace

from lra.core import versions
from lra.core.errors import LraError
from lra.core.hashing import file_hash
from lra.core.protocol import Frozen
from lra.engine.gate.revision import HOME, work_tree
from lra.engine.machine.provenance import command_output
from lra.engine.process.launch import environment
from lra.identity import lock as locks
from lra.identity.answers import CaseOutcome
from lra.identity.lock import Accepted, Lock, code_of
from lra.identity.sources import (
    Units,
    changed_units,
    hashes,
    lost_functions,
    required_cases,
    units,
    watched,
)

Tell = Callable[[str], None]
RECENT = 20
"""Number of the lock's latest commits searched for the one that it was written for."""


class Decision(Frozen, frozen=True, kw_only=True):
    """Outcome of a check."""

    verdict: Literal["untouched", "kept", "unseen", "changed"]
    cases: int = 0
    """Number of cases that ran."""
    bumps: dict[str, tuple[str, ...]] = {}
    """Features to be bumped, and the cases that moved."""
    unseen: tuple[str, ...] = ()
    """Changed or lost functions that no case enters, and cases that are gone."""
    failures: dict[str, str] = {}
    """Exceptions that cases raised, by case."""


class Check:
    """One check of a checkout: its sources, the lock, and the outcomes of cases once they ran.

    The lock is that of the checkout, or of another `commit`, which no edit here has touched.
    """

    def __init__(self, root: Path = HOME, tell: Tell = lambda line: None, commit: str = "") -> None:
        self.root, self.tell = root, tell
        self.lock = locks.read(root)
        if commit:
            self.lock = replace(locks.read_at_commit(root, commit), accepted=self.lock.accepted)
        try:
            self.units = units(root)
        except (SyntaxError, ValueError) as error:
            raise LraError(
                f"a watched file is no Python: {error}; mend it, and check again"
            ) from error
        self.answers: list[CaseOutcome] = []
        self.before: dict[str, str] = {}

    @property
    def is_untouched(self) -> bool:
        """Whether every watched unit, and every version, is as locked.

        Raises `LraError` where the journal lacks a bump that the lock knows.
        """
        now = versions.current()
        for feature, version in self.lock.versions.items():
            if now.get(feature, 1) < version:
                raise LraError(
                    f"the journal lacks the bump of {feature} to {version}; restore "
                    "lra/versions.json, or bump it again"
                )
        return self.lock.sources == hashes(self.units) and self.lock.versions == now

    def run(self) -> None:
        """Run all cases, and find their earlier digests."""
        toolchain = locks.toolchain()
        self.before = self.lock.digests.get(toolchain, {})
        if self.lock.sources and not self.before:
            self.before = self._at_its_commit()
        self.answers = answers_of(self.root, self.tell)

    def decide(self) -> Decision:
        """Judge the cases that ran."""
        if self.is_untouched and not self.answers:
            return Decision(verdict="untouched")
        return decide(self.lock, self.units, self.answers, self.before)

    def write(self) -> None:
        """Lock the sources as they are. Digests of other toolchains stay where no case is new or
        bumped: the lock knows all cases of a toolchain, or none."""
        digests = {answer.case: digest_of(answer) for answer in self.answers}
        known = self.lock.digests
        if any(_versions(digests) != _versions(other) for other in known.values()):
            known = {}
        sources = hashes(self.units)
        self.lock = replace(
            self.lock,
            files={name: file_hash(file) for name, file in watched(self.root).items()},
            sources=sources,
            versions=versions.current(),
            blind=sorted(
                {name for name, unit in self.units.items() if unit.is_function}.difference(
                    *(answer.entered for answer in self.answers)
                )
            ),
            digests=known | {locks.toolchain(): digests},
            accepted={
                n: one
                for n, one in self.lock.accepted.items()
                if one.code == code_of(n, self.units)
            },
        )
        locks.write(self.root, self.lock)

    def renew(self) -> None:
        """Update the versions that were bumped since the cases ran."""
        self.answers = [
            replace(one, versions=versions.declared((one.about, *one.uses))) for one in self.answers
        ]

    def accept(self, functions: Iterable[str], reason: str) -> None:
        """Note why changed functions need no case, for the next check."""
        accepted = self.lock.accepted | {
            name: Accepted(reason, code_of(name, self.units)) for name in functions
        }
        self.lock = replace(self.lock, accepted=accepted)
        locks.write(self.root, self.lock)

    def _at_its_commit(self) -> dict[str, str]:
        """Digests for a toolchain that the lock does not know, from the code that the lock was
        written for."""
        where = ("git", "-C", str(self.root), "log", f"-{RECENT}", "--format=%H", "--")
        for commit in (command_output(*where, str(locks.FILE)) or "").split():
            if locks.read_at_commit(self.root, commit).sources == self.lock.sources:
                self.tell(f"this machine or its libraries are new to the lock: {commit[:9]} first")
                with work_tree(commit) as tree:
                    return {
                        answer.case: digest_of(answer) for answer in answers_of(tree, self.tell)
                    }
        raise LraError(
            f"no commit at hand holds the sources of '{locks.FILE}', and it has no digests of this "
            "toolchain; fetch the whole history (git fetch --unshallow), or check where it has"
        )


def decide(
    lock: Lock, now: Units, answers: Sequence[CaseOutcome], before: Mapping[str, str]
) -> Decision:
    """Compare the outcomes of cases with earlier ones, and require that a case enters each changed
    function. A case without an earlier outcome proves nothing."""
    known = [answer for answer in answers if answer.case in before]
    edits = changed_units(lock.sources, now) if lock.sources else set()
    changed = required_cases(edits, now)
    met = set[str]().union(*changed.values())
    # An edit without functions, such as that of a class's bases, may be met by any case.
    untold = any(not required_cases({name}, now) for name in edits & lock.sources.keys())
    moved = [one for one in known if before[one.case].partition(" ")[0] != one.bits]
    restless = {one.about for one in moved}
    entered: dict[str, set[str]] = defaultdict(set)
    for one in known:
        entered[one.about].update(one.entered)
    bumps: dict[str, list[str]] = defaultdict(list)
    for one in moved:
        # Explained by another feature that moved and has met all edits that this case met.
        others = restless.intersection(one.uses)
        explained = set[str]().union(*(entered[other] for other in others))
        by_another = others and not untold and met.intersection(one.entered) <= explained
        if one.about not in _bumped(one, before) and not by_another:
            bumps[one.about].append(one.case)
    # An edit is proved by cases that ran before it, a new unit by any.
    proved, seen = (set[str]().union(*(one.entered for one in some)) for some in (known, answers))
    unseen = {
        name
        for name, functions in changed.items()
        if functions and functions.isdisjoint(proved if name in lock.sources else seen)
    }
    unseen |= lost_functions(lock.sources, now, lock.blind)
    unseen |= before.keys() - {one.case for one in answers}
    left = {n for n in unseen if n not in lock.accepted or lock.accepted[n].code != code_of(n, now)}
    return Decision(
        verdict="changed" if bumps else "unseen" if left else "kept",
        cases=len(answers),
        bumps={feature: tuple(sorted(cases)) for feature, cases in sorted(bumps.items())},
        unseen=tuple(sorted(left)),
        failures={one.case: one.failure for one in answers if one.failure},
    )


def digest_of(answer: CaseOutcome) -> str:
    """Return a lock's digest of an outcome: its bits, and versions of its features beyond 1."""
    later = (f"{name}={n}" for name, n in sorted(answer.versions.items()) if n != 1)
    return " ".join((answer.bits, *later))


def _bumped(answer: CaseOutcome, before: Mapping[str, str]) -> set[str]:
    """Features of a case whose versions differ from before."""
    then, now = (set(text.split()[1:]) for text in (before[answer.case], digest_of(answer)))
    return {feature.partition("=")[0] for feature in then ^ now}


def _versions(digests: Mapping[str, str]) -> dict[str, str]:
    return {case: text.partition(" ")[2] for case, text in digests.items()}


def answers_of(root: Path, tell: Tell, *cases: str) -> list[CaseOutcome]:
    """Run cases of a checkout, all unless some are named; raises `LraError` where that fails."""
    command = [sys.executable, "-m", "lra.identity.probe", *cases]
    own = environment() | {"PYTHONPATH": str(root)}
    found = []
    with (
        TemporaryFile("w+") as log,
        subprocess.Popen(
            command, cwd=root, env=own, stdout=subprocess.PIPE, stderr=log, text=True
        ) as child,
    ):
        assert child.stdout is not None
        for line in child.stdout:
            found.append(msgspec.json.decode(line, type=CaseOutcome))
            tell(f"{len(found)} cases")
        child.wait()
        log.seek(0)
        said = log.read()
    if child.returncode:
        last = (said.strip().splitlines() or ["it said nothing"])[-1]
        raise LraError(f"the probe ended with exit code {child.returncode}: {last}")
    return found
