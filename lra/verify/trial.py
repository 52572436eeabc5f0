"""Trial of one law on its cases, in this process: whatever happens is a finding."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

import msgspec

from lra.core.errors import LraError, UnsupportedError
from lra.core.findings import Case, Finding
from lra.core.traceback_place import place_of
from lra.verify.extent import extent
from lra.verify.law import Broken, Law, Partly, Reported, Untried
from lra.verify.rotated_sizes import in_rotation
from lra.verify.subject import Subject


def try_case(law: Law, subject: Subject, cases: Iterable[Case] | None = None) -> Finding:
    """Return what the first case that breaks a law shows; without `cases`, of the only case to try,
    or of the law's own in sizes that take turns."""
    tried: list[Case] = []
    try:
        if cases is None and subject.only is not None:
            cases = [subject.only]
        elif cases is None:
            cases = in_rotation(law, subject, law.cases(subject))
        for case in cases:
            tried.append(case)
            law.check(subject, case)
    except Reported as words:
        found = Finding(law=law.name, verdict="reported", detail=str(words))
    except Partly as words:
        found = Finding(law=law.name, verdict="held", detail=str(words))
    except Untried as words:
        # A case that was not tried is none.
        tried = tried[:-1]
        found = Finding(law=law.name, verdict="skipped", detail=str(words))
    except Broken as words:
        found = _failure(law, subject, tried, str(words))
    except UnsupportedError as error:
        found = _failure(law, subject, tried, f"refused: {error}")
    except LraError as error:
        found = _failure(law, subject, tried, str(error), ending="error")
    except Exception as error:
        detail, inside = f"{type(error).__name__}: {error}", place_of(error, subject.home)
        found = _failure(law, subject, tried, detail, ending="error", inside=inside)
    else:
        if not tried:
            return Finding(law=law.name, verdict="skipped", detail="nothing to try it on")
        found = Finding(law=law.name, verdict="held")
    cases_tried = len(tried) or int(found.verdict == "failed")
    return msgspec.structs.replace(found, cases=cases_tried, tried=extent(law, subject, tried))


_WRAPPED = re.compile(r"\binner\.(bidirectional|causal)\.")
"""Prefix that an adapter puts before the names of somebody's own parameters."""


def _failure(
    law: Law,
    subject: Subject,
    tried: list[Case],
    detail: str,
    ending: Literal["", "error"] = "",
    inside: str = "",
) -> Finding:
    """Return the failure of the case tried last, with the type that it was in; a law that measures
    names its own."""
    line = _WRAPPED.sub("", " ".join(detail.split())) + inside
    if tried and not law.measured:
        line += f", in {str(subject.dtype(tried[-1])).removeprefix('torch.')}"
    return Finding(
        law=law.name,
        verdict="failed",
        detail=line,
        case=tried[-1] if tried else None,
        ending=ending,
    )
