"""The fast path equals the paper's formula: outputs and gradients are those of the dense float64
oracle."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import NoReturn

from torch import Tensor

from attention_impls.contract import Context, Layer
from lra.core.findings import Case
from lra.verify.law import Broken, Law, binds_all, projected_gradients, require_close, require_same
from lra.verify.requests import in_parity, masks, requests, special_requests
from lra.verify.rounding import rounding
from lra.verify.subject import Subject

OUTPUT, GRADIENT = 1e-9, 1e-8
HALF = {"bfloat16": 1e-2, "float16": 2e-3}
"""Largest norm of a difference in half precision, relative to that of the result: as for the law
`precision`."""
PASSED_ON = 8
"""Factor by which a gradient of queries or keys multiplies the error of its weights': that of a
logit over that of a query, which is the size of a key times the scale."""
IN_PARITY = 16.0
"""Factor by which code that is followed may round more: it takes 1e5 off a logit."""
FAST_PATH = ("mix", "attend")
SPECIAL = (7, 37)
"""Lengths at which special positions are tried."""
MASKED_APART = (7, 37)
"""Lengths at which padded queries and masked keys are also tested apart."""


def cases(subject: Subject) -> Iterator[Case]:
    """Every request without a position scheme, padded or not, in float32 too, and some with special
    positions."""
    yield from requests(
        subject,
        masks=masks(subject, "scattered", "behind"),
        positions=("none",),
        training=True,
        dtypes=("float32",),
        far=True,
    )
    yield from special_requests(
        subject,
        SPECIAL,
        masks=masks(subject, "scattered", "behind"),
        positions=("none",),
        training=True,
    )


def check(subject: Subject, case: Case) -> None:
    """Compare the layer with projections around its oracle, in the input and all parameters."""
    layer = subject.build(case)
    context = subject.context(case, layer)
    compare(subject, case, layer, context)
    mask_BN = context.query_mask_BN
    if mask_BN is not None and case.n in MASKED_APART:
        # Padded queries and masked keys are two questions.
        compare(subject, case, layer, replace(context, query_mask_BN=None))
        compare(subject, case, layer, replace(context, query_mask_BN=mask_BN.flip(0)))


def compare(subject: Subject, case: Case, layer: Layer, context: Context) -> None:
    """Require output and gradients to be those of projections around the oracle."""
    x_BND, source_BMD = subject.inputs(case)
    leaves = {"the input": x_BND}
    if case.dtype not in HALF:
        # Sums over all positions may cancel: in half precision rounding is all that is left.
        leaves |= dict(layer.named_parameters())
        if context.position is not None:
            leaves |= {f"position's {name}": x for name, x in context.position.named_parameters()}
    if source_BMD is not None:
        leaves["the source"] = source_BMD
    found = layer(x_BND, context, source_BMD=source_BMD).y_BND
    with _without_fast_path(layer):
        wanted = layer.reference(x_BND, context, source_BMD=source_BMD)
    looser = IN_PARITY if in_parity(subject, case) else 1.0
    require(found, wanted, "output against the oracle", case, looser=looser)
    pairs = zip(
        leaves,
        projected_gradients(found, leaves.values()),
        projected_gradients(wanted, leaves.values()),
        strict=True,
    )
    for name, actual, expected in pairs:
        what = f"gradient of {name} against the oracle"
        require(actual, expected, what, case, gradient=True, looser=looser)


def require(
    found: Tensor,
    wanted: Tensor,
    what: str,
    case: Case,
    *,
    gradient: bool = False,
    looser: float = 1.0,
) -> None:
    """Require agreement to the accuracy of the case's type, of an output or of a gradient; in
    float32 to `looser` times that."""
    if case.dtype in HALF:
        require_close(found, wanted, what, (2 if gradient else 1) * HALF[case.dtype])
    elif gradient:
        require_same(found, wanted, what, max(GRADIENT, looser * PASSED_ON * rounding(case)))
    else:
        require_same(found, wanted, what, max(OUTPUT, looser * rounding(case)))


@contextmanager
def _without_fast_path(layer: Layer) -> Iterator[None]:
    """Refuse the use of a fast path to the oracle itself, by whichever class it calls it."""

    def refusing(name: str) -> Callable[..., NoReturn]:
        def refuse(*arguments: object, **named: object) -> NoReturn:
            raise Broken(f"the oracle calls {name}, and so is compared with itself")

        return refuse

    own = [
        (kind, name, vars(kind)[name])
        for kind in type(layer).__mro__
        for name in FAST_PATH
        if name in vars(kind)
    ]
    for kind, name, _ in own:
        setattr(kind, name, refusing(name))
    try:
        yield
    finally:
        for kind, name, method in own:
            setattr(kind, name, method)


LAW = Law(
    name="oracle",
    says="outputs and gradients equal the dense float64 oracle's",
    claimed=binds_all,
    cases=cases,
    check=check,
    oracle=True,
)
