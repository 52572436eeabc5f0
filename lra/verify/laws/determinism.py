"""The same seed gives the same layer, and evaluation the same result, without touching global
generators; so does training, with dropout and noise, once they are put back.

However often a layer was called before: a counter, a running mean or a generator of its own looks
like a draw, and no seed repeats it.
"""

from __future__ import annotations

import pickle
import random
from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from lra.core.findings import Case
from lra.verify.law import Broken, Law, binds_all, ordinal, require_same
from lra.verify.requests import masks, requests
from lra.verify.subject import Subject, seed_torch

OFTEN = 7
"""Length of the inputs that a layer is given many times."""
CALLS = 12
"""Number of these calls."""
RATE = 0.5
"""Rate of dropout."""


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
    if case.n == OFTEN:
        for number in range(2, CALLS + 1):
            what = f"the {ordinal(number)} call of a layer in evaluation"
            require_same(layer(x_BND, context).y_BND, first, what, 0.0)
        for rate in (0.0, RATE):
            _check_training(subject, case, rate)


def _check_training(subject: Subject, case: Case, rate: float) -> None:
    """Call a layer in training many times from one state of the global generators, and once from
    another: a call must neither depend on those before it, nor set the states."""
    trained = msgspec.structs.replace(case, training=True)
    config = subject.config_for(case)
    layer = subject.build(trained, seed=1, config=config, steady=False, dropout=rate)
    x_BND = subject.inputs(case)[0].detach()
    context = subject.context(case, layer)
    named = f"in training with dropout {rate:g}" if rate else "in training"
    try:
        outputs, ends = [], []
        for drawing in (1,) * CALLS + (2,):
            _seed_all(drawing)
            outputs.append(layer(x_BND, context).y_BND)
            ends.append(random_states())
    except Exception:
        # Other laws say what ends in training; somebody else's class may refuse to be trained.
        if subject.is_ours:
            raise
        return
    for number, found in enumerate(outputs[1:CALLS], start=2):
        what = f"the {ordinal(number)} call of a layer {named}, under one seed"
        require_same(found, outputs[0], what, 0.0)
    for name, state in ends[0].items():
        if state == ends[-1][name]:
            raise Broken(f"a call {named} sets {name} global random state")


def _seed_all(seed: int) -> None:
    seed_torch(seed)
    np.random.seed(seed)
    random.seed(seed)


def _check_construction(subject: Subject, case: Case) -> None:
    """Construct under three states of the global generators: construction must not set them, nor
    draw the same numbers for every seed."""
    ends, drawn = [], []
    for seed, drawing in ((5, 1), (5, 2), (6, 3)):
        _seed_all(drawing)
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
    says="one seed, one result, at every call; evaluation moves no random state",
    claimed=binds_all,
    cases=cases,
    check=check,
)
