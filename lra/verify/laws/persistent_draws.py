"""Persistent draws and statistics change only in `after_step`, and by the seed; each head has its
own."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import torch
from torch import Tensor

from attention_impls.contract import Layer
from lra.core.findings import Case
from lra.verify.law import Broken, Law, binds_all, relative_difference, require_same
from lra.verify.requests import directions
from lra.verify.subject import PROBES, Subject, attend

STEPS = (1, 2, 999, 1000, 2000)
"""Steps after which `after_step` is called; some mechanisms draw anew every thousand."""

FELT = 1e-6
"""Least relative change of an output that is more than rounding."""


def cases(subject: Subject) -> Iterator[Case]:
    """Every configuration and direction; the check trains."""
    for trial in range(len(subject.configs)):
        for causal in directions(subject):
            yield Case(n=16, causal=causal, trial=trial)


def check(subject: Subject, case: Case) -> None:
    """Train two layers of one seed, one of them with an extra pass: their states stay equal."""
    layer, twin = subject.build(case, seed=1).train(), subject.build(case, seed=1).train()
    context = subject.context(case, layer)
    x_BND, _ = subject.inputs(case)
    for step in STEPS:
        before = {name: value.clone() for name, value in _state_of(layer).items()}
        y_BND = layer(x_BND, context).y_BND
        if y_BND.requires_grad:
            y_BND.sum().backward()
        for name, value in _state_of(layer).items():
            require_same(value, before[name], f"{name} after a training pass", 0.0)
        trained = {name: value.clone() for name, value in layer.named_parameters()}
        layer.after_step(step)
        for name, value in layer.named_parameters():
            require_same(value, trained[name], f"{name}, which is trained, after after_step", 0.0)
        torch.rand(1 + step % 7)  # what others draw must not matter
        twin.after_step(step)
        others = _state_of(twin)
        for name, value in _state_of(layer).items():
            require_same(
                value, others[name], f"{name} of two layers of one seed after step {step}", 0.0
            )
    if case.trial == 0 and subject.is_ours:
        _declared(subject, case)
        if subject.is_attention and subject.card.capabilities.stochastic:
            _tell_heads_apart(subject, case)


def _state_of(layer: Layer) -> dict[str, Tensor]:
    """Return parameters and buffers, also those that are not saved."""
    return {**dict(layer.named_parameters()), **dict(layer.named_buffers())}


def _declared(subject: Subject, case: Case) -> None:
    """Check that a card has `stochastic` exactly where two seeds, all else being equal, hold
    different draws, in any configuration."""
    differ = False
    for config in (subject.mechanism.Config(), *subject.configs):
        one, other = (
            subject.build(case, config=config, seed=seed, drawing=0).state_dict() for seed in (1, 2)
        )
        differ |= any(not torch.equal(value, other[name]) for name, value in one.items())
    if differ and not subject.card.capabilities.stochastic:
        raise Broken("holds draws of its seed and is not declared stochastic")
    if not differ and subject.card.capabilities.stochastic:
        raise Broken("is declared stochastic and holds nothing that depends on its seed")


@torch.no_grad()
def _tell_heads_apart(subject: Subject, case: Case) -> None:
    """Give all heads the queries, keys and values of the first: draws of their own tell them apart,
    in some configuration. The input is long enough to cross the borders of small blocks."""
    for trial in range(len(subject.configs)):
        long = msgspec.structs.replace(case, n=max(PROBES), trial=trial)
        layer = subject.build(long, seed=1)
        context = subject.context(long, layer)
        heads = subject.heads(long, layer, context)
        q, k, v = (None if x is None else x[:, :1].expand_as(x) for x in heads[:3])
        assert v is not None
        out_BHNV = attend(layer, heads._replace(q_BHNK=q, k_BGMK=k, v_BGMV=v), context)
        if relative_difference(out_BHNV, out_BHNV[:, :1].expand_as(out_BHNV)) > FELT:
            return
    raise Broken("all heads of a layer hold the same draws")


LAW = Law(
    name="persistent_draws",
    says="persistent draws change in after_step alone, by the seed",
    claimed=binds_all,
    cases=cases,
    check=check,
    measured=True,
)
