"""Values that are whole numbers between two and four thousand keep their last digit in float32.

They are odd: in bfloat16 and float16, and in a product of TF32, each is rounded to another. Plain
numbers are rounded too, and nothing shows it in float64, where most laws are tried.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from attention_impls.contract import Context, Heads
from lra.core.findings import Case
from lra.verify.law import Broken, Law, binds_all
from lra.verify.requests import masks, requests
from lra.verify.rotation import rotate
from lra.verify.subject import Subject, attend

LEAST, GREATEST = 2049, 4095
MOST = 12
"""Number of cases in the short form."""
ALLOWED = 2.0**-14
"""Largest root mean square of the difference, relative to that of the values.

Values of one size and either sign differ by 2^-12 of it in float16, by 2^-9 in bfloat16. Logits of
a few, whose errors of 2^-24 each the values are multiplied by, leave less than 2^-18.
"""


def cases(subject: Subject) -> Iterator[Case]:
    """Requests to attention; no other mechanism takes values."""
    if subject.is_attention:
        every = requests(
            subject, masks=masks(subject, "scattered"), positions=("none",), batch=3, inputs="whole"
        )
        yield from rotate(every, MOST, subject, LAW.name)


@torch.no_grad()
def check(subject: Subject, case: Case) -> None:
    """Compare attention over whole values in float32 with that in the most precise type."""
    layer = subject.build(case, dtype=torch.float32)
    context = subject.context(case, layer)
    heads = subject.heads(case, layer, context)
    v = _whole(heads.v_BGMV, case.seed)
    heads = heads._replace(v_BGMV=v)
    found = _real(attend(layer, heads, context), context)
    precise = subject.build(case)
    wanted = _real(attend(precise, _to(heads, subject.precise), context), context)
    size = float(wanted.double().square().mean().sqrt())
    gap = float((found.double() - wanted.double()).square().mean().sqrt())
    # Where values cancel, errors are relative to them.
    size = max(size, LEAST / case.n**0.5)
    if not gap <= ALLOWED * size:
        raise Broken(
            f"attention over whole values of {LEAST} to {GREATEST}, float32 against "
            f"{str(wanted.dtype).removeprefix('torch.')}: off by {gap / size:.1e}, "
            f"allowed {ALLOWED:.1e}"
        )


def _whole(v_BGMV: Tensor, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed + 3)
    drawn = torch.randint(LEAST // 2, GREATEST // 2 + 1, v_BGMV.shape, generator=generator)
    signs = 2 * torch.randint(2, v_BGMV.shape, generator=generator) - 1
    return ((2 * drawn + 1) * signs).to(v_BGMV)


def _to(heads: Heads, dtype: torch.dtype) -> Heads:
    q, k, v = (None if x is None else x.to(dtype) for x in heads[:3])
    assert v is not None
    extra = {
        name: x.to(dtype) if isinstance(x, Tensor) and x.is_floating_point() else x
        for name, x in heads.extra.items()
    }
    return Heads(q, k, v, extra)


def _real(out_BHNV: Tensor, context: Context) -> Tensor:
    """Return the rows of real queries; the layer zeroes the others later."""
    mask_BN = context.query_mask_BN
    return out_BHNV if mask_BN is None else out_BHNV * mask_BN[:, None, :, None]


LAW = Law(
    name="large_integers",
    says="large whole values are not rounded to less than float32",
    claimed=binds_all,
    cases=cases,
    check=check,
    in_single=lambda subject, case: True,
)
