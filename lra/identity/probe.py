"""The probe: runs cases, each in a process of its own, and prints their outcomes.

`python -m lra.identity.probe [CASE ...]` prints a line of JSON a case.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import msgspec
import numpy as np

from lra.core import versions
from lra.identity.answers import CaseOutcome

ROOT = Path(__file__).resolve().parents[2]


class Clock:
    """A clock that goes on by a millisecond with each reading."""

    looks = 0

    def nanoseconds(self) -> int:
        """Return the time in nanoseconds."""
        self.looks += 1
        return 1_000_000 * self.looks

    def seconds(self) -> float:
        """Return the time in seconds."""
        return self.nanoseconds() / 1e9


CLOCK = Clock()


def main(wanted: list[str]) -> None:
    """Run the cases named, or all, as many at a time as there are cores."""
    # Set before anything that keeps a clock is imported.
    time.perf_counter, time.perf_counter_ns = CLOCK.seconds, CLOCK.nanoseconds
    import torch

    torch.set_num_threads(1)
    from lra.identity.cases import cases

    names = [case.name for case in cases() if not wanted or case.name in wanted]
    context = multiprocessing.get_context("fork")
    cores = len(os.sched_getaffinity(0))
    with context.Pool(cores, maxtasksperchild=1) as pool:
        for found in pool.imap_unordered(run_case, names, chunksize=1):
            print(msgspec.json.encode(found).decode(), flush=True)


def run_case(name: str) -> CaseOutcome:
    """Run one case in this process, with `CLOCK` as its clock."""
    from lra.identity.cases import cases

    digest, entered, failure = hashlib.sha256(), set[CodeType](), ""

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            entered.add(frame.f_code)

    with redirect_stdout(StringIO()) as printed:
        sys.setprofile(note)
        (case,) = (case for case in cases() if case.name == name)
        CLOCK.looks = 0
        try:
            for found in case.run():
                _hash_value(digest, found)
        except Exception as error:
            failure = f"{type(error).__name__}: {error}".splitlines()[0]
            _hash_value(digest, failure)
            traceback.print_exc()
        finally:
            sys.setprofile(None)
    _hash_value(digest, printed.getvalue())
    return CaseOutcome(
        case=name,
        about=case.about,
        uses=case.uses,
        versions=versions.declared((case.about, *case.uses)),
        bits=digest.hexdigest()[:16],
        entered=tuple(sorted(set(_functions(entered)))),
        failure=failure,
    )


def _functions(entered: set[CodeType]) -> Iterator[str]:
    for code in entered:
        file = Path(code.co_filename)
        if file.is_relative_to(ROOT):
            outermost = code.co_qualname.partition(".<locals>")[0]
            yield f"{file.relative_to(ROOT).as_posix()}:{outermost}"


def _hash_value(digest: Any, value: Any) -> None:
    """Add a value to the digest, numbers to the last bit."""
    if hasattr(value, "detach"):
        import torch

        digest.update(f"{value.dtype}{tuple(value.shape)}".encode())
        digest.update(value.detach().contiguous().view(-1).view(torch.uint8).numpy().tobytes())
    elif isinstance(value, np.ndarray):
        digest.update(
            f"{value.dtype}{value.shape}".encode() + np.ascontiguousarray(value).tobytes()
        )
    elif isinstance(value, dict):
        _hash_value(digest, sorted(value.items(), key=repr))
    elif isinstance(value, list | tuple):
        digest.update(f"[{len(value)}".encode())
        for part in value:
            _hash_value(digest, part)
    else:
        digest.update(f"{type(value).__name__} {value!r};".encode())


if __name__ == "__main__":
    main(sys.argv[1:])
