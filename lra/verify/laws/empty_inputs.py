"""Empty inputs give empty outputs: empty batches and empty sequences pass, forward and backward."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from lra.core.findings import Case
from lra.verify.law import Broken, Law, is_not_empty
from lra.verify.requests import cross_directions, directions, masks
from lra.verify.subject import Subject


def cases(subject: Subject) -> Iterator[Case]:
    """Cases without examples, without positions, without both, and without a source."""
    for batch, n in ((0, 7), (2, 0), (0, 0)):
        for causal, mask in product(directions(subject), masks(subject, "behind")):
            yield Case(n=n, batch=batch, causal=causal, mask=mask)
    if subject.card.capabilities.cross:
        for causal, n in product(cross_directions(subject), (0, 3)):
            yield Case(n=n, m=0, causal=causal)


def check(subject: Subject, case: Case) -> None:
    """Check the shape, and the gradients; an empty source gives zero."""
    layer = subject.build(case)
    x_BND, source_BMD = subject.inputs(case)
    y_BND = layer(x_BND, subject.context(case, layer), source_BMD=source_BMD).y_BND
    if y_BND.shape != x_BND.shape:
        raise Broken(f"{tuple(x_BND.shape)} goes in, {tuple(y_BND.shape)} comes out")
    if y_BND.requires_grad:
        y_BND.sum().backward()
    if case.m is not None:
        if x_BND.grad is not None and bool(x_BND.grad.any()):
            raise Broken("the output feels a query that has nothing to attend to")
        return
    for name, parameter in layer.named_parameters():
        if parameter.grad is not None and bool(parameter.grad.any()):
            raise Broken(f"nothing trains {name}")


LAW = Law(
    name="empty_inputs",
    says="empty batches and inputs pass and train nothing",
    claimed=lambda card: not card.assumed,
    cases=cases,
    check=check,
    takes=lambda case: not is_not_empty(case),
)
