"""An ordinary input gives a finite output of the same shape."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from lra.core.findings import Case, DtypeName, MaskKind
from lra.verify.law import Broken, Law, binds_all, require_finite
from lra.verify.requests import masks, requests
from lra.verify.subject import Subject

DTYPES: dict[bool, tuple[DtypeName, ...]] = {
    True: ("float32", "bfloat16", "float16"),
    False: ("float32",),
}
"""Types besides float64, for ours and for others'."""

MASKS: tuple[MaskKind, ...] = ("none", "behind")


def cases(subject: Subject) -> Iterator[Case]:
    """Every request, at every length and in every type; in training too, but for somebody's own
    class, which may hang there and still have outputs."""
    dtypes = DTYPES[subject.is_ours]
    return requests(
        subject,
        masks=masks(subject, *MASKS[1:]),
        training=subject.is_ours,
        dtypes=dtypes,
        far=True,
    )


@torch.no_grad()
def check(subject: Subject, case: Case) -> None:
    """Call the layer, and check shape and finiteness."""
    layer = subject.build(case)
    x_BND = subject.inputs(case)[0].detach()
    y_BND, state = layer(x_BND, subject.context(case, layer))
    if state is not None:
        raise Broken("a state comes out, though none was asked for")
    if y_BND.shape != x_BND.shape:
        raise Broken(f"{tuple(x_BND.shape)} goes in, {tuple(y_BND.shape)} comes out")
    if y_BND.dtype != x_BND.dtype:
        raise Broken(f"{x_BND.dtype} goes in, {y_BND.dtype} comes out")
    require_finite([("the output", y_BND)])


LAW = Law(
    name="output",
    says="an input gives a finite output of its own shape",
    claimed=binds_all,
    cases=cases,
    check=check,
)
