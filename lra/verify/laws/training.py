"""Training without dropout equals evaluation: it draws nothing, and repeats exactly.

A configuration's `noise` is drawn in training alone, and by the seed.
"""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor

from attention_impls.contract import Layer
from lra.core.findings import Case
from lra.verify.law import Broken, Law, is_not_empty, require_same
from lra.verify.laws.determinism import random_states
from lra.verify.mixed_requests import biased, every_request
from lra.verify.rotation import spread
from lra.verify.subject import Subject, quiet, seed_torch

TOLERANCE = 1e-9
COUNT = 24
"""Number of cases of the short form."""
LENGTHS = (7, 37, 129)


def cases(subject: Subject) -> Iterator[Case]:
    """Every kind of request in training."""
    own = every_request(subject, LENGTHS, training=True)
    yield from spread(own, COUNT, subject, "training")


def check(subject: Subject, case: Case) -> None:
    """Train twice, then evaluate; with noise, draw it twice from one seed."""
    layer = subject.build(case)
    x_BND, source_BMD = subject.inputs(case)
    context = biased(subject.context(case, layer), case, layer, subject)
    before = random_states()

    def output(layer: Layer) -> Tensor:
        y_BND: Tensor = layer(x_BND, context, source_BMD=source_BMD).y_BND
        return y_BND

    first = output(layer)
    for name, state in random_states().items():
        if state != before[name]:
            raise Broken(f"a training pass without dropout moves {name} global random state")
    require_same(output(layer), first, "a second training pass without dropout", 0.0)
    evaluated = output(layer.eval())
    require_same(first, evaluated, "training without dropout against evaluation", TOLERANCE)
    config = subject.configs[case.trial]
    if quiet(config) == config:
        return
    noisy = subject.build(case, config=config)
    drawn = []
    for _ in range(2):
        seed_torch(case.seed)
        drawn.append(output(noisy))
    require_same(drawn[1], drawn[0], "training with noise, drawn twice from one seed", 0.0)


LAW = Law(
    name="training",
    says="training without dropout is evaluation, and draws nothing",
    claimed=lambda card: not card.assumed,
    cases=cases,
    check=check,
    takes=lambda case: is_not_empty(case) and case.training,
)
