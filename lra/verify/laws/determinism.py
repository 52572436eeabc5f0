"""The same seed gives the same layer, and evaluation the same result, without touching global
generators."""

from __future__ import annotations

import pickle
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from lra.core.findings import Case
from lra.verify.law import Broken, Law, binds_all, require_same
from lra.verify.requests import masks, requests
from lra.verify.subject import Subject


def cases(subject: Subject) -> Iterator[Case]:
    """Every request without a position scheme."""
    return requests(subject, masks=masks(subject, "scattered"), positions=("none",))


@torch.no_grad()
def check(subject: Subject, case: Case) -> None:
    """Call twice, build twice, and look at the global generators afterwards."""
    layer = subject.build(case, seed=1, steady=False)
    x_BND = subject.inputs(case)[0].detach()
    context = subject.context(case, layer)
    # A seed that is set to its present value already changes nothing.
    torch.rand(1)
    np.random.random()
    random.random()
    before = random_states()
    first = layer(x_BND, context).y_BND
    for name, state in random_states().items():
        if state != before[name]:
            raise Broken(f"a call in evaluation moves {name} global random state")
    require_same(layer(x_BND, context).y_BND, first, "a second call in evaluation", 0.0)
    again = subject.build(case, seed=1, steady=False)
    require_same(again(x_BND, context).y_BND, first, "a second layer of the same seed", 0.0)
    dropping = subject.build(case, seed=1, steady=False, dropout=0.5)
    require_same(dropping(x_BND, context).y_BND, first, "evaluation with a dropout rate", 0.0)
    _check_construction(subject, case)


def _check_construction(subject: Subject, case: Case) -> None:
    """Construct under three states of the global generators: construction must not set them, nor
    draw the same numbers for every seed."""
    ends, drawn = [], []
    for seed, drawing in ((5, 1), (5, 2), (6, 3)):
        np.random.seed(drawing)
        random.seed(drawing)
        with _Draws(own=subject.is_ours) as draws:
            subject.build(case, seed=seed, drawing=drawing, steady=False)
        ends.append(random_states())
        drawn.append(draws.kept)
    for name, state in ends[0].items():
        if state == ends[1][name]:
            raise Broken(f"its construction sets {name} global random state")
    # Draws that come from `seed` alone may be the same in the first two.
    for one, other in zip(drawn[0], drawn[2], strict=False):
        if torch.equal(one, other):
            shape = tuple(one.shape)
            raise Broken(f"its construction draws the same {shape} numbers whatever the seed")


class _Draws(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Keeps random draws as they are made: two equal ones come from one seed, and are no table."""

    def __init__(self, *, own: bool) -> None:
        """Keep draws from the layer's own generators too, or only those from global ones."""
        super().__init__()  # type: ignore[no-untyped-call]
        self.own = own
        self.kept: list[Tensor] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Run the operator; keep a copy of a random result."""
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        is_random = torch.Tag.nondeterministic_seeded in func.tags
        if is_random and (self.own or kwargs.get("generator") is None) and _is_telling(result):
            self.kept.append(result.detach().clone())
        return result


def _is_telling(drawn: Any) -> bool:
    """Whether two such draws cannot agree by chance, unlike signs and permutations."""
    is_real = isinstance(drawn, Tensor) and drawn.is_floating_point()
    return is_real and len(drawn.unique()) > 2


def random_states() -> dict[str, bytes]:
    """Return the states of the three global generators, by library."""
    return {
        "torch's": pickle.dumps(torch.get_rng_state().tolist()),
        "numpy's": pickle.dumps(np.random.get_state()),
        "Python's": pickle.dumps(random.getstate()),
    }


LAW = Law(
    name="determinism",
    says="one seed, one result; evaluation moves no random state",
    claimed=binds_all,
    cases=cases,
    check=check,
)
