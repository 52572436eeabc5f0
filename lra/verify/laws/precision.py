"""Half precision stays close to float32: results are rounded, sums are not."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product

import torch
from torch import Tensor

from attention_impls.contract import Layer
from lra.core.findings import Case
from lra.core.traceback_place import place_of
from lra.verify.law import Broken, Law, Reported, binds_all, gradients
from lra.verify.requests import directions, masks, position_schemes
from lra.verify.rotation import spread
from lra.verify.subject import Subject

DTYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16}

PARTS = ("output", "gradient of the input")
COUNT = 12
"""Number of cases of the short form."""
LIMITS = {"bfloat16": (1e-2, 1.5e-2), "float16": (2e-3, 3e-3), "autocast": (2e-2, 5e-2)}
"""Largest norm of a difference of each part, relative to that of the float32 result: rounded
results stay within it, rounded sums hardly. Gradients under autocast are rounded twice."""


def cases(subject: Subject) -> Iterator[Case]:
    """One length long enough for sums to matter, one short: requests with and without padding and
    positions, in evaluation and in training."""
    every = (
        Case(n=n, causal=causal, mask=mask, position=scheme, training=training)
        for n, causal, mask, scheme, training in product(
            (37, 200),
            directions(subject),
            masks(subject, "scattered"),
            position_schemes(subject),
            (False, True)[: 1 + subject.trains_quietly],
        )
    )
    yield from spread(every, COUNT, subject, "precision")


def check(subject: Subject, case: Case) -> None:
    """Compare half precision with float32 of the same rounded parameters; autocast with float32.

    Nobody claims as much of somebody else's code: there the largest differences are reported.
    """
    if not subject.is_ours:
        asked = [case] if subject.only is not None else list(cases(subject))
        raise Reported("; ".join(_in_words(subject, asked)))
    for how, limits in LIMITS.items():
        words = f"under {how}" if how == "autocast" else f"in {how}"
        for part, gap, limit in zip(PARTS, _gaps(subject, case, how), limits, strict=True):
            if not gap <= limit:
                raise Broken(f"{part} {words}: off by {gap:.1e} of its norm, allowed {limit:g}")


def _in_words(subject: Subject, asked: list[Case]) -> Iterator[str]:
    """The largest differences of each type, and whether float16 lacks range.

    Its digits are eight times as fine as bfloat16's.
    """
    found = {how: _largest(subject, asked, how) for how in LIMITS}
    for how, gaps in found.items():
        yield f"{how}: " + (
            gaps
            if isinstance(gaps, str)
            else ", ".join(
                f"{part} off by {gap:.1e}" for part, gap in zip(PARTS, gaps, strict=True)
            )
        )
    coarse, fine = found["bfloat16"], found["float16"]
    if isinstance(coarse, str) or isinstance(fine, str):
        return
    if any(one > other for one, other in zip(fine, coarse, strict=True)):
        yield "float16 is further off than bfloat16 with its fewer digits: a number left its range"


def _largest(subject: Subject, asked: list[Case], how: str) -> tuple[float, float] | str:
    """Return the largest differences of these cases, or in words the first that has none."""
    found = []
    for case in asked:
        try:
            found.append(_gaps(subject, case, how))
        except Broken as words:
            return str(words)
        except Exception as error:
            line = " ".join(f"{type(error).__name__}: {error}".split())
            return f"{line}{place_of(error, subject.home)} ({case})"
        if not all(map(math.isfinite, found[-1])):
            return f"not finite ({case})"
    output, gradient = (max(gaps) for gaps in zip(*found, strict=True))
    return output, gradient


def _gaps(subject: Subject, case: Case, how: str) -> list[float]:
    """Return the norms of the differences, relative to those of the float32 results."""
    dtype = DTYPES.get(how, torch.float32)
    rounded = subject.build(case, dtype=dtype, qkv_width=64)
    precise = subject.build(case, dtype=torch.float32, qkv_width=64)
    precise.load_state_dict(rounded.state_dict())
    x_BND = subject.inputs(case)[0].detach().to(dtype)
    wanted = _run(subject, case, precise, x_BND, torch.float32)
    with torch.autocast(subject.device, dtype=torch.bfloat16, enabled=how == "autocast"):
        found = _run(subject, case, rounded, x_BND, dtype)
    if how in DTYPES and found[0].dtype != dtype:
        raise Broken(f"a {how} layer answers in {found[0].dtype}")
    pairs = [
        (one.detach().float(), exact.detach()) for one, exact in zip(found, wanted, strict=True)
    ]
    return [float((one - exact).norm() / max(1e-12, float(exact.norm()))) for one, exact in pairs]


def _run(
    subject: Subject, case: Case, layer: Layer, x_BND: Tensor, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    leaf = x_BND.to(dtype).requires_grad_()
    y_BND = layer(leaf, subject.context(case, layer)).y_BND
    return y_BND, gradients(y_BND, [leaf], x_BND.to(y_BND.dtype))[0]


LAW = Law(
    name="precision",
    says="bfloat16 and float16 stay close to float32",
    claimed=binds_all,
    cases=cases,
    check=check,
    measured=True,
    dtypes=("float32", "bfloat16", "float16"),
)
