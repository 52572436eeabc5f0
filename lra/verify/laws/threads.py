"""One thread and two give the same: no result depends on how many compute it, but for rounding.

Nor on another thread that calls the same layer meanwhile, as a server's does: what a layer keeps
from one step of a call to the next has to be the call's own.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import product

import torch
from msgspec import structs
from torch import Tensor

from lra.core.findings import Case, DtypeName
from lra.verify.interrupted import interrupted
from lra.verify.law import Law, Untried, binds_all, projected_gradients, require_same
from lra.verify.laws import oracle
from lra.verify.requests import directions, masks, requests
from lra.verify.rotation import rotate
from lra.verify.subject import Subject

LENGTHS = (16, 37, 129, 300)
SHARED = 129
"""Length from which on there are pairs enough for torch to share one operation among threads."""
MOST = {True: 2, False: 1}
"""Number of cases of each type in the short form, shared and not: what depends on threads rarely
depends on the request."""


def cases(subject: Subject) -> Iterator[Case]:
    """Some requests, in float32 too."""
    if subject.device != "cpu":
        raise Untried("threads of the host compute nothing there")
    kinds = masks(subject, "scattered")
    every = list(
        requests(subject, lengths=LENGTHS, masks=kinds, positions=("none",), training=True)
    )
    dtypes: tuple[DtypeName, ...] = ("float64", "float32")
    for shared, dtype in product(MOST, dtypes):
        own = [structs.replace(one, dtype=dtype) for one in every if (one.n >= SHARED) == shared]
        yield from rotate(own, MOST[shared], subject, f"threads, {dtype}, {shared}")


def check(subject: Subject, case: Case) -> None:
    """Build and run a layer by one thread, and again by two; with a short input let another thread
    interrupt it."""
    (wanted, wanted_grad), (found, found_grad) = (
        _computed_by(count, subject, case) for count in (1, 2)
    )
    what = "by two threads, against one"
    require_same(found, wanted, f"output {what}", subject.allowed(oracle.OUTPUT, case))
    allowed = oracle.PASSED_ON * subject.allowed(oracle.OUTPUT, case)
    require_same(found_grad, wanted_grad, f"gradient of the input {what}", allowed)
    if subject.is_ours and case.n < SHARED:
        _interrupt(subject, case)


def _interrupt(subject: Subject, case: Case) -> None:
    """Compare calls of two threads at once with each alone: other numbers of the same shape, in
    another direction where there is one."""
    layer = subject.build(case)
    ways = directions(subject)
    other = structs.replace(case, seed=case.seed + 1, causal=ways[ways.index(case.causal) - 1])

    def call(asked: Case) -> Tensor:
        y_BND: Tensor = layer(
            subject.inputs(asked)[0].detach(), subject.context(asked, layer)
        ).y_BND
        return y_BND

    wanted, second = call(case), call(other)
    found, others = interrupted(lambda: call(case), lambda: call(other))
    allowed = subject.allowed(oracle.OUTPUT, case)
    require_same(found, wanted, "output of a call that another thread interrupts", allowed)
    what = "output of a call that interrupts another thread's"
    require_same(others, second.expand_as(others), what, allowed)


def _computed_by(count: int, subject: Subject, case: Case) -> tuple[Tensor, Tensor]:
    """Return the output and the gradient of the input, computed by so many threads.

    The caller is none of them: threads that computed together end with the one that called them,
    and others would not survive a fork of the process.
    """
    before = torch.get_num_threads()
    try:
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(_run, count, subject, case).result()
    finally:
        torch.set_num_threads(before)


def _run(count: int, subject: Subject, case: Case) -> tuple[Tensor, Tensor]:
    torch.set_num_threads(count)
    layer = subject.build(case)
    x_BND, _ = subject.inputs(case)
    y_BND = layer(x_BND, subject.context(case, layer)).y_BND
    return y_BND.detach(), projected_gradients(y_BND, [x_BND])[0]


LAW = Law(
    name="threads",
    says="one thread and two compute the same, and two callers get their own",
    claimed=binds_all,
    cases=cases,
    check=check,
)
