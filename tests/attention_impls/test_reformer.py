"""The Reformer's own: buckets, the ring of chunks, the position itself."""

from __future__ import annotations

import pytest
import torch

from attention_impls.contract import Context
from attention_impls.learned import reformer
from attention_impls.learned._merged import takes_merged


def shared_softmax(q, k, v, causal=False):
    """Softmax over shared queries and keys, where a position reads itself only if alone."""
    n = q.shape[2]
    logits = q @ k.mT - 1e5 * torch.eye(n, dtype=q.dtype)
    if causal:
        logits = logits.masked_fill(torch.ones(n, n, dtype=torch.bool).triu(1), -torch.inf)
    return logits.softmax(-1) @ v


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("n", "chunk"), [(9, 9), (9, 20), (10, 5), (9, 5)])
@pytest.mark.parametrize("rounds", [1, 3])
def test_up_to_two_chunks_it_is_full_whatever_the_buckets(
    causal, n, chunk, rounds, build, draw
) -> None:
    """With a ring that runs on into the next round two chunks and three rounds would not be."""
    layer = build(("reformer", {"chunk": chunk, "rounds": rounds}))
    qkv = draw(2, n)
    buckets = torch.randint(4, (2, 2, rounds, n))
    found, _ = layer.attend(*qkv, Context(causal), buckets=buckets)
    torch.testing.assert_close(found, shared_softmax(*qkv, causal))
    if causal:
        torch.testing.assert_close(found[:, :, 0], qkv[2][:, :, 0])


@pytest.mark.parametrize("causal", [False, True])
def test_tiles_equal_the_oracle(
    causal, build, some_padding, small_tiles, check_reference, monkeypatch
) -> None:
    """With a gradient of their own, as on a CPU; `test_gpu_courses` has the other way."""
    monkeypatch.setattr(reformer, "LONG", 0)
    layer = build(("reformer", {"chunk": 3, "rounds": 4}))
    for n in (1, 5, 6, 16):
        x = torch.randn(2, n, 12, dtype=torch.float64, requires_grad=True)
        for mask in (None, some_padding(2, n)):
            check_reference(layer, x, Context(causal, query_mask_BN=mask))


@pytest.mark.parametrize(
    ("size", "width", "dtype", "taken"),
    [
        (64, 64, torch.bfloat16, True),
        (64, 8, torch.float32, True),
        (48, 64, torch.bfloat16, False),
        (64, 12, torch.bfloat16, False),
        (64, 64, torch.float64, False),
    ],
)
def test_a_gpus_kernel_takes_what_is_aligned(size, width, dtype, taken) -> None:
    q = torch.empty(1, 2, 300, width, dtype=dtype, device="meta")
    assert takes_merged(q, q, size, 0.0) is taken
    assert not takes_merged(q, q, size, 0.1)


def test_rounds_at_once_are_the_buckets_of_each(build, monkeypatch) -> None:
    layer = build(("reformer", {"chunk": 1, "rounds": 3}))
    for n in (8, 300):  # by one factor, and by two
        x = torch.randn(2, 2, n, 8, dtype=torch.float64)
        one_by_one = layer.buckets(x, None)
        with monkeypatch.context() as patched:
            patched.setattr(reformer, "needs_autograd", lambda q, position: True)
            assert torch.equal(layer.buckets(x, None), one_by_one)


def test_the_gradient_drops_the_weights_that_the_output_dropped(
    build, draw, small_tiles, monkeypatch
) -> None:
    monkeypatch.setattr(reformer, "LONG", 0)
    layer = build(("reformer", {"chunk": 3, "rounds": 2}), dropout=0.4).train()
    q, k, v = draw(1, 10)
    buckets = torch.randint(3, (1, 2, 2, 10))

    def attend(*qkv):
        torch.manual_seed(0)
        return layer.attend(*qkv, Context(), buckets=buckets)[0]

    dropped = attend(q, k, v)
    assert torch.autograd.gradcheck(attend, (q, k, v), fast_mode=True)
    assert not torch.allclose(dropped, layer.eval().attend(q, k, v, Context(), buckets=buckets)[0])


def test_buckets_feel_directions_alone(build) -> None:
    layer = build(("reformer", {"chunk": 4, "rounds": 3}))
    x = torch.randn(2, 2, 40, 8, dtype=torch.float64)
    scale = torch.rand(2, 2, 40, 1, dtype=torch.float64) + 0.1
    buckets = layer.buckets(x, None)
    assert buckets.shape == (2, 2, 3, 40) and int(buckets.max()) < 20
    assert torch.equal(buckets, layer.buckets(x * scale, None))
    assert not torch.equal(buckets[:, :, 0], buckets[:, :, 1])
    opposite = (buckets + 10) % 20
    assert torch.equal(layer.buckets(-x, None), opposite)


def test_of_equally_near_directions_the_first_counts() -> None:
    along = torch.randint(-2, 3, (500, 1, 1, 7)).double()
    wanted = torch.cat([along, -along], dim=-1).argmax(-1)
    assert torch.equal(reformer._nearest(along), wanted)


def test_rounds_hash_one_after_the_other(build, watched) -> None:
    layer = build(("reformer", {"chunk": 4, "rounds": 8}))
    with watched() as seen:
        layer.buckets(torch.randn(1, 2, 256, 8, dtype=torch.float64), None)
    assert seen.elements <= 2 * 256 * 64


def test_padding_has_a_bucket_behind_all_others(build) -> None:
    layer = build(("reformer", {"chunk": 1, "rounds": 2}))
    mask = torch.rand(2, 300) > 0.3
    x = torch.randn(2, 2, 300, 8, dtype=torch.float64)
    buckets = layer.buckets(x, mask)
    padding = ~mask[:, None, None].expand_as(buckets)
    assert int(buckets[~padding].max()) < int(buckets[padding].min())
    assert len(buckets[padding].unique()) == 1


def test_long_inputs_have_about_as_many_buckets_as_the_paper(build) -> None:
    layer = build(("reformer", {"chunk": 1, "rounds": 1}))
    for n in (8, 64, 65, 300, 2000):
        x = torch.randn(1, 1, n, 8, dtype=torch.float64)
        mask = torch.zeros(1, n, dtype=torch.bool)
        total = int(layer.buckets(x, mask).max())
        assert total % 2 == 0 and 2 * n <= total <= 2.5 * n


def test_the_arenas_buckets_and_chunks_are_ten_whatever_the_length(build, draw) -> None:
    """Its code makes 2010 of 2001 positions, in chunks of 201; here the last is short."""
    layer = build(("reformer", {"chunk": 64, "rounds": 1, "parity": "lra2021"}))
    for n, size in ((2001, 201), (1000, 101), (41, 5)):
        buckets = layer.buckets(torch.randn(1, 2, n, 8, dtype=torch.float64), None)
        assert int(buckets.max()) == 9 and int(buckets.min()) == 0
        read = layer.support(n, n, Context(), buckets=buckets)[0, 0].sum(-1)
        short = n - 9 * size if n > 41 else 1
        assert set(read.tolist()) <= {2 * size, size + short}


def test_the_arenas_logits_by_hand(build) -> None:
    """Times sqrt(4) = 2, keys as long as they are, itself like any other: q_0 = (1, 0, 0, 0) has
    2 with itself, 2 x with q_1 = (x, ...) and 0 with q_2; with x = 1/2 the weights go as e^2, e, 1.
    Three positions are three chunks of one: 0, sorted behind 1, reads it and itself."""
    layer = build(("reformer", {"rounds": 1, "parity": "lra2021"}))
    q = torch.zeros(1, 2, 3, 4, dtype=torch.float64)
    q[:, :, 0, 0], q[:, :, 1, 0], q[:, :, 2, 1] = 1.0, 0.5, 1.0
    v = torch.tensor([[3.0], [6.0], [9.0]], dtype=torch.float64).expand(1, 2, -1, -1)
    buckets = torch.tensor([7, 1, 8]).expand(1, 2, 1, 3)  # sorted: 1, 0, 2
    e = 2.718281828459045
    wanted = [(3 * e * e + 6 * e) / (e * e + e), None, None]
    # 1 reads 2 in the ring, with which it has 0, and itself with 2 / 4; 2 reads 0 and itself.
    wanted[1] = (6 * e**0.5 + 9) / (e**0.5 + 1)
    wanted[2] = (3 + 9 * e * e) / (1 + e * e)
    for found, _ in (
        layer.attend(q, q, v, Context(), buckets=buckets),
        layer.oracle(q, q, v, Context(), buckets=buckets),
    ):
        torch.testing.assert_close(found[0, 1, :, 0], torch.tensor(wanted, dtype=torch.float64))
    x = torch.randn(1, 5, 12, dtype=torch.float64)
    heads = layer.project(x, Context(), None, None)
    assert torch.equal(heads.q_BHNK, heads.k_BGMK)


@pytest.mark.parametrize("n", [1, 5, 6])
def test_up_to_two_chunks_nothing_is_sorted(
    n, build, some_padding, check_reference, monkeypatch
) -> None:
    """Whether hashed or not: rounds that see every pair once cancel in their mean."""
    monkeypatch.delattr(reformer, "sorted_attention")
    monkeypatch.delattr(reformer.Reformer, "buckets")
    layer = build(("reformer", {"chunk": 3, "rounds": 4}))
    x = torch.randn(2, n, 12, dtype=torch.float64, requires_grad=True)
    for causal in (False, True):
        for mask in (None, some_padding(2, n)):
            check_reference(layer, x, Context(causal, query_mask_BN=mask))
