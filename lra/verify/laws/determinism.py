"""The same seed gives the same layer, and evaluation the same result, touching nobody's draws."""

from __future__ import annotations

import pickle
import random
from collections.abc import Iterator

import numpy as np
import torch

from lra.core.findings import Case
from lra.verify.law import Broken, Law, always, same
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
    # Whoever sets a seed that is set already moves nothing.
    torch.rand(1)
    np.random.random()
    random.random()
    before = random_states()
    first = layer(x_BND, context).y_BND
    for name, state in random_states().items():
        if state != before[name]:
            raise Broken(f"a call in evaluation moves {name} global random state")
    same(layer(x_BND, context).y_BND, first, "a second call in evaluation", 0.0)
    again = subject.build(case, seed=1, steady=False)
    same(again(x_BND, context).y_BND, first, "a second layer of the same seed", 0.0)
    dropping = subject.build(case, seed=1, steady=False, dropout=0.5)
    same(dropping(x_BND, context).y_BND, first, "evaluation with a dropout rate", 0.0)
    _drawn(subject, case)


def _drawn(subject: Subject, case: Case) -> None:
    """Construct under two states of the global generators: neither ends where the other does."""
    ends, held = [], []
    for seed in (1, 2):
        np.random.seed(seed)
        random.seed(seed)
        layer = subject.build(case, seed=5, drawing=seed, steady=False)
        ends.append(random_states())
        held.append(layer.state_dict().values())
    for name, state in ends[0].items():
        if state == ends[1][name]:
            raise Broken(f"its construction sets {name} global random state")
    drawn = any(x.is_floating_point() and len(x.unique()) > 1 for x in held[0])
    if drawn and all(map(torch.equal, *held)):
        raise Broken("its parameters are the same whatever the seed")


def random_states() -> dict[str, bytes]:
    """Return the states of the three global generators, by whose they are."""
    return {
        "torch's": pickle.dumps(torch.get_rng_state().tolist()),
        "numpy's": pickle.dumps(np.random.get_state()),
        "Python's": pickle.dumps(random.getstate()),
    }


LAW = Law(
    name="determinism",
    says="one seed, one result; evaluation moves no random state",
    claimed=always,
    cases=cases,
    check=check,
)
