"""The Sinkhorn Transformer's own: the sort, its balance, its noise, the slots of a block."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from attention_impls.contract import Context, Dims
from attention_impls.dense.sdpa import Sdpa
from attention_impls.learned._sorting import FLOOR, with_sorted, with_sorted_at_once
from attention_impls.learned._sorting import sort as sorted_by
from attention_impls.learned.sinkhorn import Sinkhorn, SinkhornConfig

BOTH = pytest.mark.parametrize("join", [with_sorted, with_sorted_at_once])
"""As a CPU has it, and as a GPU does."""


def all_real(count: int) -> torch.Tensor:
    return torch.ones(1, count, dtype=torch.bool)


def test_three_positions_in_two_blocks_by_hand(build, draw) -> None:
    """Blocks {0, 1} and {2, nothing}; one iteration: columns, then rows."""
    layer = build(("sinkhorn", {"block": 2, "iterations": 1}))
    q, k, v = (x.detach() for x in draw(1, 3, heads=2))
    wanted = torch.randn(1, 2, 2, 2, dtype=torch.float64)
    found, _ = layer.attend(q, k, v, Context(), wanted=wanted)
    sort = wanted.exp() / wanted.exp().sum(-2, keepdim=True)
    sort = sort / sort.sum(-1, keepdim=True)
    for head in range(2):
        for i, block, own in ((0, 0, [0, 1]), (1, 0, [0, 1]), (2, 1, [2])):
            near, far = sort[0, head, block]
            rows = []
            for x in (k[0, head], v[0, head]):
                # The second slot of the second block is empty: that slot is position 1 alone.
                mixed = torch.stack([near * x[0] + far * x[2], x[1]])
                rows.append(torch.cat([x[own], mixed]))
            wanted_row = (rows[0] @ q[0, head, i] / 8**0.5).softmax(0) @ rows[1]
            torch.testing.assert_close(found[0, head, i], wanted_row)


def test_the_sort_comes_near_doubly_stochastic_and_its_rows_are_exact() -> None:
    wanted = torch.randn(1, 2, 6, 6, dtype=torch.float64) * 2
    gaps = []
    for iterations in (1, 5, 20, 60):
        sort = sorted_by(wanted, all_real(6), iterations, causal=False)
        torch.testing.assert_close(sort.sum(-1), torch.ones(1, 2, 6, dtype=torch.float64))
        gaps.append(float((sort.sum(-2) - 1).abs().amax()))
    assert gaps[0] > gaps[1] > gaps[2] > gaps[3] and gaps[3] < 1e-3


def test_padded_blocks_neither_want_nor_are_wanted() -> None:
    wanted = torch.randn(1, 2, 5, 5, dtype=torch.float64)
    filled = torch.tensor([[True, False, True, True, False]])
    real = filled[0].nonzero().flatten()
    inner = wanted[:, :, real][..., real]
    for causal in (False, True):
        sort = sorted_by(wanted, filled, 7, causal)
        alone = sorted_by(inner, all_real(3), 7, causal)
        torch.testing.assert_close(sort[:, :, real][..., real], alone)
        assert not bool(sort[:, :, real][..., ~filled[0]].any())


def test_noise_is_for_training_only(build) -> None:
    x = torch.randn(1, 12, 12, dtype=torch.float64)
    layer = build(("sinkhorn", {"block": 4}))
    still = layer(x, Context()).y_BND
    layer.train()
    assert not torch.equal(layer(x, Context()).y_BND, still)
    quiet = build(("sinkhorn", {"block": 4, "noise": False})).train()
    torch.testing.assert_close(quiet(x, Context()).y_BND, still)


def test_huge_later_inputs_leave_no_rounding_behind(build) -> None:
    """In float32, where a sum that they were added to and taken off again would have lost all."""
    layer = build(("sinkhorn", {"block": 8}), dtype=torch.float32)
    x = torch.randn(1, 40, 12)
    later = x.clone()
    later[:, 36:] *= 1e8
    found, wanted = (layer(y, Context(causal=True)).y_BND[:, :36] for y in (later, x))
    assert torch.equal(found, wanted)


def test_the_arenas_sums_by_hand(build) -> None:
    """Six positions in blocks of two: three sets {0, 3}, {1, 4}, {2, 5} and two runs of three.

    Its code contracts blocks and permutation over different indices, and rows of a permutation sum
    to 1: to each slot comes the sum of its run. With q = 0 every softmax is even.
    """
    layer = build(("sinkhorn", {"block": 2, "parity": "lra2021"}))
    assert not any(name.startswith("sort") for name, _ in layer.named_parameters())
    k = torch.randn(1, 2, 6, 4, dtype=torch.float64)
    q, v = torch.zeros_like(k), torch.tensor([1.0, 2, 4, 8, 16, 32]).double()[:, None]
    v = v.expand(1, 2, -1, -1)
    half = (1 + 2 + 4 + 8 + 16 + 32) / 2
    wanted = torch.tensor([4.5, 9, 18, 4.5, 9, 18], dtype=torch.float64) + half
    for found, _ in (layer.attend(q, k, v, Context()), layer.oracle(q, k, v, Context())):
        torch.testing.assert_close(found[0, 1, :, 0], wanted)
    # By the sorted keys as the code has them: sum over blocks k of slot s, and over l.
    blocks = k[0].view(2, 2, 3, 4)
    permutation = torch.randn(2, 3, 3, dtype=torch.float64).softmax(-1)
    as_run = torch.einsum("hskd,hnl->hsnd", blocks, permutation)
    torch.testing.assert_close(as_run[:, :, 1], blocks.sum(2))


def test_the_mix_is_made_in_the_precision_of_the_sort() -> None:
    torch.manual_seed(0)
    x = torch.randn(2, 3, 6, 4, 8).bfloat16()
    sort = torch.randn(2, 3, 6, 6).softmax(-1)
    wanted = (sort @ x.flatten(3).float()).bfloat16()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        both = with_sorted(x.flatten(2, 3), 4, sort)
    assert torch.equal(both[:, :, :, 4:].transpose(1, 2).flatten(3), wanted)


@pytest.mark.parametrize(
    ("join", "dtype"),
    [
        (with_sorted, torch.float32),
        (with_sorted, torch.float16),
        (with_sorted_at_once, torch.float32),
        (with_sorted_at_once, torch.bfloat16),
    ],
)
def test_a_slot_of_the_least_share_is_divided_and_has_gradients(join, dtype: torch.dtype) -> None:
    """Two blocks of which one is real at a slot that the sort hardly gives to it."""
    share = 2 * FLOOR
    x = torch.tensor([2.0, 0.0], dtype=dtype).view(1, 1, 2, 1).requires_grad_()
    sort = torch.tensor([[share, 1.0], [1.0, share]]).view(1, 1, 2, 2).requires_grad_()
    real = torch.tensor([[[[1.0], [0.0]]]])
    both = join(x, 1, sort, sort @ real)
    torch.testing.assert_close(both[0, :, 0, 1, 0], torch.tensor([2.0, 2.0], dtype=dtype))
    (dx,) = torch.autograd.grad(both[:, 0].sum(), x, retain_graph=True)
    # The other position is padding, whose gradient `attend` drops.
    torch.testing.assert_close(dx[0, 0, 0], torch.tensor([2.0], dtype=dtype))
    (dsort,) = torch.autograd.grad(both.square().sum(), sort)
    # However little it is, the only real position is all of the slot.
    rounding = 0.05 if dtype == torch.bfloat16 else 1e-4
    assert dsort.isfinite().all() and (dsort * sort).abs().amax().item() < rounding


@BOTH
@pytest.mark.parametrize("n", [20, 18, 3])
def test_what_is_not_real_is_in_neither_part_and_gets_no_gradient(join, n: int) -> None:
    count = -(-n // 5)
    x = torch.randn(2, 3, n, 6, dtype=torch.float64).requires_grad_()
    real = torch.rand(2, n) > 0.4
    blocks = F.pad(real, (0, 5 * count - n)).view(2, count, 5)
    sort = torch.rand(2, 3, count, count, dtype=torch.float64)
    zeroed = F.pad(x * real[:, None, :, None], (0, 0, 0, 5 * count - n)).view(2, 3, count, 5, 6)
    both, written_out = (
        join(x, 5, sort, real_BUS=blocks),
        torch.cat([zeroed, torch.einsum("bhuw,bhwsk->bhusk", sort, zeroed)], dim=3),
    )
    torch.testing.assert_close(both.transpose(1, 2), written_out)
    upstream = torch.randn_like(both)
    (found,) = torch.autograd.grad(both, x, upstream)
    (expected,) = torch.autograd.grad(written_out, x, upstream.transpose(1, 2))
    torch.testing.assert_close(found, expected)


@BOTH
def test_a_slot_below_the_least_share_is_nothing_and_moves_nothing(join) -> None:
    x = torch.tensor([2.0, 0.0]).view(1, 1, 2, 1)
    sort = torch.tensor([[FLOOR / 2, 1.0], [1.0, FLOOR / 2]]).view(1, 1, 2, 2)
    shares = (sort @ torch.tensor([[[[1.0], [0.0]]]])).requires_grad_()
    both = join(x, 1, sort, shares)
    assert both[0, 0, 0, 1, 0] == 0.0 and both[0, 1, 0, 1, 0] == 2.0
    (dshares,) = torch.autograd.grad((both * 1e20).sum(), shares)
    assert dshares[0, 0, 0, 0] == 0.0 and dshares[0, 0, 1, 0] != 0.0


def test_a_query_is_read_as_it_is_where_its_own_key_is_hidden() -> None:
    """One block is softmax attention, with a mask of the keys alone too."""
    dims = Dims(8, 8, 2, max_length=8)
    torch.manual_seed(0)
    layer = Sinkhorn(dims, SinkhornConfig(block=8)).eval()
    exact = Sdpa(dims).eval()
    exact.load_state_dict({k: v for k, v in layer.state_dict().items() if "sort_" not in k})
    x = torch.randn(2, 8, 8)
    context = Context(key_mask_BM=torch.arange(8) < torch.tensor([[5], [8]]))
    torch.testing.assert_close(layer(x, context).y_BND, exact(x, context).y_BND)
