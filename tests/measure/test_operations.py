"""Counted operations against products worked out by hand."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from lra.measure.operations import _FORMULAS, count_operations

N, M, K = 5, 7, 3


def test_products_of_every_kind() -> None:
    a, b = torch.randn(2, N, K), torch.randn(2, K, M)
    out, bias = torch.empty(2, N, M), torch.randn(M)
    assert count_operations(lambda: a[0] @ b[0]) == 2 * N * K * M
    assert count_operations(lambda: torch.bmm(a, b, out=out)) == 2 * 2 * N * K * M
    assert count_operations(lambda: out.baddbmm_(a, b)) == 2 * 2 * N * K * M
    assert count_operations(lambda: out[0].addmm_(a[0], b[0])) == 2 * N * K * M
    assert count_operations(lambda: torch.einsum("bnk,bkm->bnm", a, b)) == 2 * 2 * N * K * M
    assert count_operations(lambda: F.linear(a, b[0].mT, bias)) == 2 * 2 * N * K * M
    assert count_operations(lambda: a.softmax(-1)) == 0


def test_fused_attention_is_counted_forward_and_backward() -> None:
    q, k, v = (torch.randn(2, 4, n, 8, requires_grad=True) for n in (N, M, M))
    product = 2 * 2 * 4 * N * M * 8

    def call() -> None:
        torch.autograd.backward(F.scaled_dot_product_attention(q, k, v).sum())

    with torch.no_grad():
        forward = count_operations(lambda: F.scaled_dot_product_attention(q, k, v))
    assert forward == 2 * product
    # Backward: weights once more, then the gradients of v, of the weights, of q and of k.
    assert count_operations(call) == 2 * product + 5 * product


def test_fewer_heads_of_keys_and_products_of_a_type_of_their_own_are_counted() -> None:
    # On the meta device, as torch has some of these on a GPU alone.
    q, dout = (torch.empty(2, 4, N, 8, device="meta") for _ in range(2))
    k, v = (torch.empty(2, 2, M, 8, device="meta") for _ in range(2))
    product = 2 * 2 * 4 * N * M * 8
    aten = torch.ops.aten
    assert _FORMULAS[aten._scaled_dot_product_cudnn_attention](q, k, v, out_val=q) == 2 * product
    back = _FORMULAS[aten._scaled_dot_product_cudnn_attention_backward]
    assert back(dout, q, k, v, out_val=q) == 5 * product
    a, b = (torch.empty(2, *shape, device="meta") for shape in ((N, K), (K, M)))
    assert _FORMULAS[aten.bmm](a, b, torch.float32, out_val=a) == 2 * 2 * N * K * M


def test_between_is_not_counted() -> None:
    x = torch.randn(N, N)
    assert count_operations(lambda: None, between=lambda: x @ x) == 0


def test_it_counts_without_autograd_and_where_a_module_returns_its_parameters() -> None:
    class Table(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.randn(M, K))

        def forward(self) -> torch.Tensor:
            return self.weight[:N]

    table, x = Table(), torch.randn(2, K)

    def call() -> torch.Tensor:
        return F.linear(x, table())

    for mode in (torch.no_grad, torch.inference_mode):
        with mode():
            assert count_operations(call) == 2 * 2 * K * N
