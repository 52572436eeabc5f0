"""Type of a trial of one law."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from lra.core.findings import Case, Finding
from lra.verify.law import Law
from lra.verify.subject import Subject

Attempt = Callable[[Law, Subject, Iterable[Case] | None], Finding]
"""Trial of a law on these cases; None stands for the law's own."""
