"""Linear attention's own, and the kernel scans that it shares with others."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from attention_impls.contract import Context
from attention_impls.kernel import _causal, _tiles
from attention_impls.kernel._causal import CHUNK
from attention_impls.kernel._features import EluFeatures
from lra.core.errors import UnsupportedError

LINEAR = ("linear", {})
KERNELS = [
    LINEAR,
    ("performer", {"features": 24}),
    ("performer", {"features": 24, "kernel": "relu"}),
]
LENGTHS = [1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK + 5]

kernels = pytest.mark.parametrize("case", KERNELS, ids=lambda case: "-".join(map(str, case)))
directions = pytest.mark.parametrize("causal", [False, True], ids=["bidirectional", "causal"])


@kernels
@directions
@pytest.mark.parametrize("length", LENGTHS)
def test_equals_its_oracle_around_whole_chunks(
    case, causal, length, build, draw, check_oracle, some_padding
) -> None:
    """With the chunk that is used, not a shrunken one; a tile holds several examples."""
    for mask in (None, some_padding(3, length)):
        check_oracle(build(case), draw(3, length), Context(causal=causal, key_mask_BM=mask))


@kernels
@directions
@pytest.mark.parametrize("tile", [1, 24 * CHUNK, 24 * 2 * CHUNK + 1])
def test_the_size_of_tiles_changes_nothing(
    case, causal, tile, build, draw, check_oracle, some_padding, monkeypatch
) -> None:
    """From single rows to several chunks of one head, with a remainder."""
    monkeypatch.setattr(_tiles, "TILE", tile)
    length = CHUNK + 3 if tile == 1 else 3 * CHUNK + 5
    context = Context(causal=causal, key_mask_BM=some_padding(2, length))
    check_oracle(build(case), draw(2, length), context)


@kernels
def test_what_a_compiler_traces_is_the_same(case, build, draw, monkeypatch) -> None:
    """Outputs and gradients: at zeros, at huge keys next to a masked one, in a row that sees none,
    and without keys."""
    layer, mask = build(case), torch.tensor([[True, False, *[True] * 5], [False] * 7])
    q, k, v = draw(2, 7, width=8)
    k.data[0, :, [0, *range(2, 7)]] *= 200.0
    q.data[0, :, 5], k.data[1, :, 2] = 0.0, 0.0
    found = []
    for traced in (False, True):
        monkeypatch.setattr(torch.compiler, "is_compiling", lambda value=traced: value)
        for key_mask_BM in (None, mask):
            out, _ = layer.attend(q, k, v, Context(key_mask_BM=key_mask_BM))
            found.append((out, *torch.autograd.grad(out.square().sum(), (q, k, v))))
        found.append((layer.attend(q, k[:, :, :0], v[:, :, :0], Context())[0],))
    for one, other in zip(found[:3], found[3:], strict=True):
        torch.testing.assert_close(other, one, rtol=1e-9, atol=1e-10)
    assert not bool(found[4][0][1].any() or found[5][0].any())


@kernels
def test_gradients_pass_through_a_state(case, build, draw) -> None:
    """Two segments with the state between them train as one sequence does."""
    layer, qkv = build(case), draw(2, 150)
    context = Context(causal=True)
    whole, _ = layer.attend(*qkv, context)
    state = layer.init_state(2, length=150, device=torch.device("cpu"), dtype=torch.float64)
    parts = []
    for rows in (slice(0, 70), slice(70, 150)):
        part, state = layer.attend(*(x[:, :, rows] for x in qkv), context, state)
        parts.append(part)
    upstream = torch.randn(whole.shape, dtype=torch.float64)
    wanted = torch.autograd.grad(whole, qkv, upstream)
    found = torch.autograd.grad(torch.cat(parts, 2), qkv, upstream)
    torch.testing.assert_close(found, wanted, rtol=1e-9, atol=1e-9)


@kernels
@pytest.mark.parametrize("split", [1, CHUNK - 1, CHUNK, CHUNK + 1])
def test_decoding_in_float32_continues_a_prefill_of_any_length(case, split, build) -> None:
    layer = build(case, dtype=torch.float32)
    x = torch.randn(2, split + 9, 12)
    expected = layer(x, Context(causal=True)).y_BND
    state = layer.init_state(2, length=split, device=x.device, dtype=torch.bfloat16)
    assert state.memory_BHUR.dtype == torch.float32
    with torch.no_grad():
        y, state = layer(x[:, :split], Context(causal=True), state=state)
        for place in range(split, split + 9):
            torch.testing.assert_close(y[:, -1], expected[:, place - 1], rtol=1e-4, atol=1e-5)
            y, state = layer(x[:, place : place + 1], Context(causal=True), state=state)
            assert state.seen_B.tolist() == [place + 1] * 2


@kernels
def test_a_state_with_fewer_keys_than_queries_is_refused(case, build, draw) -> None:
    layer = build(case)
    state = layer.init_state(2, length=9, device=torch.device("cpu"), dtype=torch.float64)
    with pytest.raises(UnsupportedError, match=r"\bkeys\b.*\bqueries\b") as refusal:
        layer.attend(*draw(2, 9, 5), Context(causal=True), state)
    assert "\n" not in str(refusal.value)


@kernels
@directions
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_sums_run_in_float32(case, causal, dtype, build) -> None:
    """Running sums in half precision stop growing at 2048; here the last keys still count."""
    length = 9000
    v = torch.zeros(1, 2, length, 8, dtype=dtype)
    v[:, :, length // 2 :] = 1.0
    q = k = torch.full_like(v, 0.5)
    out, _ = build(case, dtype=torch.float32).attend(q, k, v, Context(causal=causal))
    assert out.dtype == dtype
    assert out[:, :, -1].float().sub(0.5).abs().max() < 4e-3


@kernels
@directions
def test_autocast_does_not_reach_inside(case, causal, build, draw) -> None:
    """Neither forward nor, where it is called within, backward."""
    layer, qkv = build(case, dtype=torch.float32), draw(2, 70, dtype=torch.float32)
    outside, _ = layer.attend(*qkv, Context(causal=causal))
    wanted = torch.autograd.grad(outside.square().sum(), qkv)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside, _ = layer.attend(*qkv, Context(causal=causal))
        found = torch.autograd.grad(inside.square().sum(), qkv)
    assert torch.equal(inside, outside)
    assert all(torch.equal(x, y) for x, y in zip(found, wanted, strict=True))


@kernels
@directions
def test_no_array_of_all_pairs(case, causal, build, draw, watched) -> None:
    """Forward and backward, nothing is larger than a tile or a few times the inputs."""
    length = 3000
    qkv = draw(1, length, dtype=torch.float32, heads=1)
    layer = build(case, dtype=torch.float32, heads=1, qkv_width=8)
    with watched() as seen:
        out, _ = layer.attend(*qkv, Context(causal=causal))
        out.square().sum().backward()
    assert length * 4 <= seen.elements < length * length / 16


@kernels
def test_what_is_kept_for_the_gradient_grows_linearly(case, build, draw) -> None:
    def kept(length: int) -> int:
        total = 0

        def count(tensor: Tensor) -> Tensor:
            nonlocal total
            total += tensor.numel()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(count, lambda x: x):
            build(case).attend(*draw(1, length), Context(causal=True))
        return total

    assert 1.9 < kept(4096) / kept(2048) < 2.1


def test_small_features_keep_their_digits(build) -> None:
    """elu(x) + 1 in float32 is 0 or a multiple of 6e-8 at x = -20; exp(-20) = 2e-9."""
    layer = build(LINEAR, dtype=torch.float32)
    q = torch.ones(1, 2, 2, 8)
    k = torch.stack([torch.full((1, 2, 8), -20.0), torch.full((1, 2, 8), -21.0)], dim=2)
    v = torch.tensor([1.0, 0.0]).view(1, 1, 2, 1).expand(1, 2, 2, 8)
    out, _ = layer.attend(q, k, v, Context())
    share = 1 / (1 + torch.tensor(-1.0).exp())
    torch.testing.assert_close(out, share.expand_as(out), rtol=1e-5, atol=0)


@directions
@pytest.mark.parametrize("place", [0, 100, 149])
def test_a_huge_key_stays_exact_in_float32(causal, place, build, draw, check_oracle) -> None:
    qkv = draw(1, 150, dtype=torch.float32)
    with torch.no_grad():
        qkv[1][:, :, place] *= 40.0
    check_oracle(build(LINEAR, dtype=torch.float32), qkv, Context(causal=causal), 2e-5)


@directions
def test_features_that_underflow_give_zero_and_finite_gradients(causal, build, draw) -> None:
    q, k, v = draw(1, 70, dtype=torch.float32)
    for shift in (80.0, 100.0, 1e4):
        for shifted in ((q - shift, k), (q, k - shift), (q - shift, k - shift)):
            out, _ = build(LINEAR, dtype=torch.float32).attend(*shifted, v, Context(causal=causal))
            gradients = torch.autograd.grad(out.square().sum(), (q, k, v))
            assert all(bool(x.isfinite().all()) for x in (out, *gradients))
    assert not bool(out.any())


def test_on_a_gpu_a_tile_of_the_causal_form_holds_many_heads() -> None:
    """Each tile is a round of launches: at 4096 positions all 64 heads fit into one."""
    q = torch.empty(8, 8, 4096, 64, device="meta")
    pieces, rows = _causal._plan(q, EluFeatures())
    assert len(pieces) == 1 and rows == 4096
