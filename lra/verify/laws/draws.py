"""Persistent draws and statistics change in `after_step` alone, and there by the seed."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from lra.core.findings import Case
from lra.verify.law import Law, always, same
from lra.verify.requests import directions
from lra.verify.subject import Subject

STEPS = (1, 2, 999, 1000, 2000)
"""After which `after_step` is called; some mechanisms draw afresh every thousand."""


def cases(subject: Subject) -> Iterator[Case]:
    """Every direction, in training."""
    for trial in range(len(subject.configs)):
        for causal in directions(subject):
            yield Case(n=16, causal=causal, trial=trial)


def check(subject: Subject, case: Case) -> None:
    """Train two layers of one seed, one of them with an extra pass: they hold the same."""
    layer, twin = subject.build(case, seed=1).train(), subject.build(case, seed=1).train()
    context = subject.context(case, layer)
    x_BND, _ = subject.inputs(case)
    for step in STEPS:
        before = {name: value.clone() for name, value in layer.named_buffers()}
        y_BND = layer(x_BND, context).y_BND
        if y_BND.requires_grad:
            y_BND.sum().backward()
        for name, value in layer.named_buffers():
            same(value, before[name], f"{name} after a training pass", 0.0)
        torch.rand(step % 7)  # what others draw must not matter
        layer.after_step(step)
        twin.after_step(step)
        for (name, value), (_, other) in zip(
            layer.named_buffers(), twin.named_buffers(), strict=True
        ):
            same(value, other, f"{name} of two layers of one seed after step {step}", 0.0)


LAW = Law(
    name="draws",
    says="persistent draws change in after_step alone, by the seed",
    claimed=always,
    cases=cases,
    check=check,
    measured=True,
)
