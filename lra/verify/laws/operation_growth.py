"""Counted work of a pass grows no faster with the length than claimed, that of its queries alone
and of its keys alone too; that of a batch is its examples'. Operations that a mechanism declares
are those counted.

Counts are the same on a busy machine. Products are counted as operations; everything else by the
elements that it writes, as a sum written anew at each position or a sequence copied for each of its
steps takes no product, and frees its memory at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from typing import Any

import msgspec
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

from lra.core.errors import UnsupportedError, UsageError
from lra.core.findings import Case
from lra.verify import growth
from lra.verify.law import Broken, Law, Reported, binds_all, is_not_empty
from lra.verify.requests import directions, masks
from lra.verify.rotation import rotate
from lra.verify.subject import Subject

LONGEST = {False: 2048, True: 8192}
"""Length by form, beyond those at which mechanisms switch algorithms, which is no growth."""
FEW, MANY = 2, 12
"""Numbers of examples whose work is compared; a single one needs fewer copies of its own."""
SHARED = 1.05
"""Largest work of many against as many times that of few."""
MOST = 2
"""Number of cases in the short form, besides a plain one in evaluation for each direction."""
NEAR = 0.01
"""Largest share of the counted operations by which declared ones may be off: a sum of one term is
multiplied element by element, and not counted."""


def cases(subject: Subject) -> Iterator[Case]:
    """Every direction plain in evaluation, some with padding and in training; each scheme of
    positions that acts inside; many examples; another sequence."""
    n = LONGEST[subject.full]
    every = [
        Case(n=n, causal=causal, mask=mask, training=training, batch=1, heads=1)
        for mask, training, causal in product(
            masks(subject, "behind"), (False, True), directions(subject)
        )
    ]
    count = len(directions(subject))
    yield from every[:count]
    yield from rotate(every[count:], MOST, subject, LAW.name)
    yield from growth.positioned(subject, n, LAW.name)
    yield msgspec.structs.replace(every[0], n=n // 8, batch=MANY)
    yield from growth.crossed(subject, n, LAW.name)


def check(subject: Subject, case: Case) -> None:
    """Compare the growth of each count with the card's formula, or with that of the projections and
    outputs where it is more: no whole pass is less than linear."""
    claimed = growth.claimed(subject.card.time, case)
    if subject.is_ours and claimed is None:
        raise UsageError(f"'{subject.card.time}' is no growth; write e.g. O(n m d) on the card")
    if case.batch > 1:
        _require_linear_in_examples(subject, case)
        return
    mode = "training" if case.training else "evaluation"
    few, many = work(subject, growth.halved(case)), work(subject, case)
    words = []
    for name in few:
        if not few[name] or not many[name]:
            continue
        grown = growth.exponent(case, few[name], many[name])
        found = f"{name} in {mode} grow {growth.words(case, grown)}"
        words.append(found)
        if claimed and subject.is_ours and growth.is_too_fast(grown, claimed.exponent):
            raise Broken(f"{found}, {growth.against(subject, subject.card.time)}")
    if not subject.is_ours:
        raise Reported(f"{', '.join(words)}, {growth.against(subject, subject.card.time)}")
    if is_described(case):
        _require_declared(subject, case, many["operations"])


def is_described(case: Case) -> bool:
    """Return whether a case is one whose operations a layer declares."""
    plain = case.mask == "none" and case.position == "none" and not case.special
    return plain and case.m is None and not case.training and case.batch == 1


def _require_declared(subject: Subject, case: Case, counted: int) -> None:
    """Require the declared operations to be those counted in float32, or, where a library's kernel
    hides products from torch, those that torch takes itself in float64."""
    layer = growth.asked(subject, case)[0]
    try:
        declared = layer.operations(case.n, causal=case.causal)
    except UnsupportedError:
        return
    if abs(declared - counted) > NEAR * counted:
        again = work(subject, case, dtype=torch.float64)["operations"]
        if abs(declared - again) > NEAR * again:
            raise Broken(
                f"it declares {declared:,} operations of {case.n} positions, and {counted:,} are "
                "counted"
            )


def _require_linear_in_examples(subject: Subject, case: Case) -> None:
    few, many = work(subject, msgspec.structs.replace(case, batch=FEW)), work(subject, case)
    for name, count in many.items():
        if subject.is_ours and count * FEW > SHARED * case.batch * few[name]:
            raise Broken(
                f"{name} of {case.batch} examples are {count:,}, {count / few[name]:.1f} times "
                f"those of {FEW}"
            )


def work(subject: Subject, case: Case, *, dtype: torch.dtype = torch.float32) -> dict[str, int]:
    """Return the operations of products, and the elements written, of a pass."""
    layer, context, x_BND, source_BMD = growth.asked(subject, case, dtype=dtype)
    with torch.set_grad_enabled(case.training), Counted() as counted:
        y_BND = layer(x_BND, context, source_BMD=source_BMD).y_BND
        if y_BND.requires_grad:
            y_BND.sum().backward()
    return {"operations": counted.operations, "elements written": counted.elements}


class Counted(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Adds up torch's formulas of products, and the elements of results that are no views."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.operations = 0
        self.elements = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        self.operations += _products(func, args, kwargs, out)
        if not func.is_view:
            self.elements += sum(x.numel() for x in tree_leaves(out) if isinstance(x, Tensor))
        return out


def _products(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> int:
    """Return the operations of a product, convolution or fused attention; 0 for all else.

    Torch has no formula for fused attention on a CPU, nor for products in place.
    """
    name = func._overloadpacket.__name__.rstrip("_")
    shapes = [x.shape for x in args if isinstance(x, Tensor)]
    if name in ("mm", "bmm"):
        return 2 * math.prod(shapes[0]) * shapes[1][-1]
    if name in ("addmm", "baddbmm"):
        return 2 * math.prod(shapes[1]) * shapes[2][-1]
    if name.startswith("_scaled_dot_product"):
        back = "backward" in name  # the first argument is the gradient then
        queries, keys = shapes[back : back + 2]
        return 2 * math.prod(queries) * keys[-2] * (5 if back else 2)
    formula = flop_registry.get(func._overloadpacket)
    return 0 if formula is None else int(formula(*args, **kwargs, out_val=out))


LAW = Law(
    name="operation_growth",
    says="counted operations grow with the length no faster than claimed",
    claimed=binds_all,
    cases=cases,
    check=check,
    takes=lambda case: is_not_empty(case) and growth.longest(case) >= 64,
    measured=True,
    dtypes=("float32",),
)
