"""Peak memory of a training pass, and of one in evaluation, grows no faster with the length than
claimed."""

from __future__ import annotations

import math
import weakref
from collections.abc import Iterator
from typing import Any

import msgspec
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from lra.core.errors import UsageError
from lra.core.findings import Case
from lra.verdict.declared_cost import DeclaredCost, parse_cost, parse_greatest_cost
from lra.verify.law import Broken, Law, Reported, binds_all, is_not_empty
from lra.verify.requests import directions, masks, position_schemes
from lra.verify.rotation import rotate
from lra.verify.subject import Subject

LONGEST = {False: 4096, True: 8192}
"""Length by form, beyond those at which mechanisms switch algorithms, which is no growth."""
MOST = 4
"""Number of cases in evaluation, in the short form."""
SLACK = 0.25
"""Largest excess of the exponent, between this length and half of it, over the claimed one."""


def cases(subject: Subject) -> Iterator[Case]:
    """Every direction, plain, with padding and with each scheme of positions that acts inside; each
    in training, and some in evaluation."""
    n = LONGEST[subject.full]
    if subject.is_ours and _exponent(subject, parse_cost(subject.card.memory)) > 1.5:
        n //= 2  # so much for all pairs is enough
    plain = {training: Case(n=n, training=training, batch=1, heads=1) for training in (True, False)}
    ways: list[dict[str, Any]] = []
    for causal in directions(subject):
        ways += ({"causal": causal, "mask": mask} for mask in masks(subject, "behind"))
        schemes = position_schemes(subject)[1:]
        ways += ({"causal": causal, "position": scheme} for scheme in schemes)
    yield from (msgspec.structs.replace(plain[True], **way) for way in ways)
    evaluated = [msgspec.structs.replace(plain[False], **way) for way in ways]
    yield from rotate(evaluated, MOST, subject, LAW.name)


def check(subject: Subject, case: Case) -> None:
    """Compare the growth of the peak with the card's formula, or with the output's where that is
    more: no card claims less than linear for a whole pass.

    A card's formulas after the first are for padding, biases and dropout.
    """
    claimed = subject.card.memory
    shorter = case.n // 2
    peaks = [peak(subject, case, n) for n in (shorter, case.n)]
    measured = math.log2(peaks[1] / peaks[0])
    mode = "training" if case.training else "evaluation"
    found = (
        f"peak memory in {mode} grows as n^{measured:.2f} from {shorter} to {case.n}, "
        f"claimed: {claimed}"
    )
    if not subject.is_ours:
        raise Reported(found)
    plain = case.mask == "none" and case.position == "none"
    gpu = subject.device == "cuda"
    allowed = _exponent(
        subject, parse_cost(claimed, gpu=gpu) if plain else parse_greatest_cost(claimed)
    )
    if measured > max(1.0, allowed) + SLACK:
        raise Broken(found)


def _exponent(subject: Subject, claimed: DeclaredCost | None) -> float:
    if claimed is None:
        raise UsageError(f"'{subject.card.memory}' is no growth; write e.g. O(n m d) on the card")
    return claimed.exponent


def peak(subject: Subject, case: Case, n: int) -> int:
    """Return the largest number of bytes in live tensors during a training pass, or one in
    evaluation, beyond those before."""
    shape = msgspec.structs.replace(case, n=n)
    layer = subject.build(shape, dtype=torch.float32, max_length=n)
    context = subject.context(shape, layer)
    x_BND, _ = subject.inputs(shape, dtype=torch.float32)
    with torch.set_grad_enabled(case.training), LiveBytes() as live:
        y_BND = layer(x_BND, context).y_BND
        if y_BND.requires_grad:
            y_BND.sum().backward()
    return int(live.peak)


class LiveBytes(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts the bytes of the tensors that operations return, while they live.

    Memory that a kernel allocates and frees inside of itself is not seen.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.peak = 0
        self._live = 0
        self._seen: set[int] = set()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        known = {self._key(x) for x in tree_leaves((args, kwargs)) if isinstance(x, Tensor)}
        out = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(out):
            # A view of an existing tensor is not new.
            if isinstance(tensor, Tensor) and self._key(tensor) not in known | self._seen:
                self._count(tensor.untyped_storage())
        self.peak = max(self.peak, self._live)
        return out

    @staticmethod
    def _key(tensor: Tensor) -> int:
        return int(tensor.untyped_storage()._cdata)

    def _count(self, storage: torch.UntypedStorage) -> None:
        key, size = int(storage._cdata), storage.nbytes()
        self._seen.add(key)
        self._live += size
        weakref.finalize(storage, self._forget, key, size)

    def _forget(self, key: int, size: int) -> None:
        self._seen.discard(key)
        self._live -= size


LAW = Law(
    name="memory_growth",
    says="peak memory grows with the length no faster than claimed",
    claimed=binds_all,
    cases=cases,
    check=check,
    takes=lambda case: is_not_empty(case) and case.n >= 64,
    measured=True,
    dtypes=("float32",),
)
