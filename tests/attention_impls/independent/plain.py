"""Attention in plain Python numbers: loops over positions and `math.exp`, no tensor arithmetic.

The mechanisms under test share no line with it. Heads are lists of rows; `reads(i)` are the keys
that row i may see.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import torch
from torch import Tensor

Row = list[float]
Rows = list[Row]


def dot(a: Sequence[float], b: Sequence[float]) -> float:
    """Return the sum of products."""
    return sum(x * y for x, y in zip(a, b, strict=True))


def softmax(logits: Sequence[float]) -> Row:
    """Return e^x over the sum of all e^x."""
    exponentials = [math.exp(x) for x in logits]
    return [x / sum(exponentials) for x in exponentials]


def blend(weights: Sequence[float], rows: Sequence[Row]) -> Row:
    """Return sum_j weights[j] rows[j]."""
    return [dot(weights, column) for column in zip(*rows, strict=True)]


def product(a: Rows, b: Rows) -> Rows:
    """Return the product of two matrices."""
    return [blend(row, b) for row in a]


def turned(a: Rows) -> Rows:
    """Return the transpose."""
    return [list(column) for column in zip(*a, strict=True)]


def attention(q: Rows, k: Rows, v: Rows, reads: Callable[[int], Sequence[int]]) -> Rows:
    """Return softmax(q_i . k_j / sqrt(K)) v_j over what i reads."""
    out = []
    for i, query in enumerate(q):
        keys = reads(i)
        weights = softmax([dot(query, k[j]) / math.sqrt(len(query)) for j in keys])
        out.append(blend(weights, [v[j] for j in keys]))
    return out


def affine(x: Rows, linear: torch.nn.Linear) -> Rows:
    """Return W x_i + b."""
    weight, bias = linear.weight.tolist(), linear.bias.tolist()
    return [[dot(w, row) + b for w, b in zip(weight, bias, strict=True)] for row in x]


def head(x: Rows, number: int, width: int) -> Rows:
    """Return one head's columns."""
    return [row[number * width : (number + 1) * width] for row in x]


def drawn(*shape: int, seed: int = 0) -> Tensor:
    """Return Gaussian numbers."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def powers(exponents: Sequence[int], m: int, heads: int = 2) -> tuple[Tensor, Tensor, Tensor]:
    """Return q, k and v whose weights are powers of whole numbers, (1, heads, N or M, 4).

    q_i = (2 e_i, 0, 0, 0) and k_j = (ln(j + 1), 5, 5, 5): with width 4 the logit is
    2 e_i ln(j + 1) / sqrt(4), so that e to it is (j + 1)^e_i. Value j is (j + 1)^2 + 10.
    """
    q = torch.zeros(len(exponents), 4, dtype=torch.float64)
    q[:, 0] = 2 * torch.tensor(exponents)
    k = torch.full((m, 4), 5.0, dtype=torch.float64)
    k[:, 0] = torch.tensor([math.log(j + 1) for j in range(m)], dtype=torch.float64)
    v = torch.tensor([[(j + 1.0) ** 2 + 10] for j in range(m)], dtype=torch.float64)
    return tuple(x.expand(1, heads, -1, -1).clone() for x in (q, k, v))  # type: ignore[return-value]


def shares(exponents: Sequence[int], reads: Sequence[Sequence[int]]) -> Tensor:
    """Return what comes of `powers` in rows that read these keys, (N), by whole numbers alone."""
    out = []
    for exponent, keys in zip(exponents, reads, strict=True):
        weights = [(j + 1) ** exponent for j in keys]
        values = [(j + 1) ** 2 + 10 for j in keys]
        total = sum(w * x for w, x in zip(weights, values, strict=True))
        out.append(float(Fraction(total, sum(weights))) if keys else 0.0)
    return torch.tensor(out, dtype=torch.float64)


def same(found: Tensor, wanted: Tensor | Rows) -> None:
    """Fail where two differ by more than rounding."""
    wanted = torch.as_tensor(wanted, dtype=torch.float64)
    torch.testing.assert_close(found.detach(), wanted, rtol=1e-12, atol=1e-12)
