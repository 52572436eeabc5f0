"""A small source with its cases, which cost nothing to run."""

from __future__ import annotations

import subprocess
from pathlib import Path

from lra.core.versions import declared
from lra.identity.answers import CaseOutcome

SOURCE = '''
"""A mechanism."""
TILE = 64
HALF = TILE // 2

class Mixer:
    width = 3

    def mix(self, x):
        """Mix."""
        return x * HALF

    def decode(self, x: int) -> int:
        return x + self.width

def helper(x):
    return x
'''
FILE = "lra/training/step.py"


def answer(case: str, bits: str = "a", uses: tuple[str, ...] = (), *entered: str) -> CaseOutcome:
    about = case.partition(",")[0]
    return CaseOutcome(
        case=case, about=about, uses=uses, versions=declared((about, *uses)), bits=bits,
        entered=tuple(f"{FILE}:{name}" for name in entered),
    )  # fmt: skip


def git(root: Path, *words: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false")
    subprocess.run(["git", "-C", str(root), *who, *words], check=True, capture_output=True)
