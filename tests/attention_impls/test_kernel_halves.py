"""Kernel mechanisms in half precision: the way that a GPU takes, here on a CPU.

Errors are relative Frobenius norms against the oracle in float64. The bounds are about twice the
errors found.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from attention_impls.contract import Context
from attention_impls.kernel import _products
from attention_impls.kernel._chunks import CHUNK
from attention_impls.kernel._fused import WIDEST, fits
from attention_impls.kernel._products import PART, accelerated, halves, parts
from lra.core.catalogue import find
from lra.core.loading import load
from lra.verify.laws import precision
from lra.verify.subject import Subject

WIDTH = 16
"""Draws are divided by 2, exactly: the oracle's are the same."""
LINEAR = ("linear", {})
SOFTMAX = ("performer", {"features": 24})
KERNELS = [
    LINEAR,
    SOFTMAX,
    ("performer", {"features": 24, "kernel": "relu"}),
    ("performer", {"parity": "lra2021"}),
]
LIMITS = (0.007, 0.02, 0.02, 0.009)
"""Errors of the output and of the gradients of queries, keys and values. A query's is a small
difference of what it reads, and with it its error the largest."""
SPLIT = 3 * PART + CHUNK + 8
"""Four heads are cut into parts, whose last is not full; so is the last chunk."""
kernels = pytest.mark.parametrize("case", KERNELS, ids=lambda case: "-".join(map(str, case)))
directions = pytest.mark.parametrize("causal", [False, True], ids=["bidirectional", "causal"])


@pytest.fixture
def on_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take CPUs for devices that multiply bfloat16 fast."""
    monkeypatch.setattr(_products, "accelerated", lambda device: True)


@pytest.fixture
def layer_of(build, on_gpu: None):
    return lambda case: build(case, dtype=torch.bfloat16, qkv_width=2 * WIDTH)


@pytest.fixture
def inputs(draw):
    """Queries, keys and values in bfloat16, laid out as projections are."""

    def make(batch: int, n: int, m: int | None = None) -> list[Tensor]:
        return [
            x.detach().transpose(1, 2).contiguous().bfloat16().transpose(1, 2).requires_grad_()
            for x in draw(batch, n, m, width=WIDTH)
        ]

    return make


def error(found: Tensor, wanted: Tensor) -> float:
    found, wanted = found.detach().double(), wanted.detach().double()
    return float((found - wanted).norm() / wanted.norm())


def errors(layer: Any, qkv: list[Tensor], context: Context) -> list[float]:
    """Errors of the output and of the gradients of q, k and v."""
    exact = [x.detach().double().requires_grad_() for x in qkv]
    wanted, _ = layer.oracle(*exact, context)
    found, _ = layer.attend(*qkv, context)
    assert found.dtype == torch.bfloat16
    upstream = torch.randn(wanted.shape, generator=torch.Generator().manual_seed(1))
    pairs = zip(
        (found, *torch.autograd.grad(found, qkv, upstream.bfloat16())),
        (wanted, *torch.autograd.grad(wanted, exact, upstream.bfloat16().double())),
        strict=True,
    )
    return [error(*pair) for pair in pairs]


@pytest.fixture
def half_padded():
    """Some keys are masked; the last example has none left."""

    def make(batch: int, m: int) -> Tensor:
        mask = torch.rand(batch, m, generator=torch.Generator().manual_seed(2)) > 0.3
        mask[-1] = False
        return mask

    return make


@kernels
@directions
@pytest.mark.parametrize("length", [5, CHUNK, SPLIT])
def test_it_is_close_to_its_oracle(case, causal, length, layer_of, inputs, half_padded) -> None:
    for mask in (None, half_padded(2, length)):
        found = errors(layer_of(case), inputs(2, length), Context(causal, key_mask_BM=mask))
        assert all(x < most for x, most in zip(found, LIMITS, strict=True)), found


@pytest.mark.usefixtures("on_gpu")
@pytest.mark.parametrize("name", ["linear", "performer"])
def test_the_law_of_precision_holds(name) -> None:
    """Features of ReLU break it in float32 as well: rounded queries pass over its kink."""
    mechanism = load(find("mechanism", name))
    subject = Subject(mechanism, mechanism.Config())
    for case in precision.LAW.cases(subject):
        precision.LAW.check(subject, case)


@kernels
def test_what_values_share_does_not_drown_the_gradients(
    case, layer_of, inputs, half_padded
) -> None:
    """Outputs and what keys add to them differ little from it; queries' gradients are that."""
    q, k, v = inputs(2, SPLIT)
    with torch.no_grad():
        v += 4.0
    for mask in (None, half_padded(2, SPLIT)):
        found = errors(layer_of(case), [q, k, v], Context(key_mask_BM=mask))
        assert all(x < most for x, most in zip(found, LIMITS, strict=True)), found


@kernels
@pytest.mark.parametrize(("n", "m"), [(SPLIT, 3), (3, SPLIT), (200, 70)])
@directions
def test_queries_and_keys_may_differ_in_number(case, n, m, causal, layer_of, inputs) -> None:
    """Causal, they meet at their ends: queries before the first key are zero."""
    layer, qkv = layer_of(case), inputs(2, n, m)
    found = errors(layer, qkv, Context(causal))
    assert all(x < most for x, most in zip(found, LIMITS, strict=True)), found
    if causal:
        assert not bool(layer.attend(*qkv, Context(causal))[0][:, :, : max(0, n - m)].any())


@kernels
@directions
def test_without_keys_there_is_nothing(case, causal, layer_of, inputs) -> None:
    out, _ = layer_of(case).attend(*inputs(2, 5, 0), Context(causal))
    assert out.shape == (2, 2, 5, WIDTH) and not bool(out.any())


@kernels
def test_states_and_gradients_pass_between_segments(case, layer_of, inputs) -> None:
    """In three segments, one of a single position, as in one; states stay in float32."""
    layer, qkv, context = layer_of(case), inputs(2, 300), Context(causal=True)
    whole, _ = layer.attend(*qkv, context)
    state = layer.init_state(2, length=300, device=torch.device("cpu"), dtype=torch.bfloat16)
    pieces = []
    for rows in (slice(0, 170), slice(170, 171), slice(171, 300)):
        piece, state = layer.attend(*(x[:, :, rows] for x in qkv), context, state)
        assert state.memory_BHUR.dtype == state.log_scale_BH.dtype == torch.float32
        assert state.memory_BHUR.shape[2] == WIDTH + 1
        pieces.append(piece)
    assert state.seen_B.tolist() == [300, 300]
    upstream = torch.randn_like(whole)
    wanted = (whole, *torch.autograd.grad(whole, qkv, upstream))
    joined = torch.cat(pieces, 2)
    found = (joined, *torch.autograd.grad(joined, qkv, upstream))
    for one, other, most in zip(found, wanted, LIMITS, strict=True):
        assert error(one, other) < most


@kernels
@directions
def test_weights_sum_to_one_and_rows_without_keys_are_zero(
    case, causal, layer_of, inputs, half_padded
) -> None:
    """Constant values come out as they are, to the last two digits of bfloat16."""
    layer, (q, k, v), mask = layer_of(case), inputs(3, SPLIT), half_padded(3, SPLIT)
    mask[:2, 0] = True
    context = Context(causal, key_mask_BM=mask)
    out, _ = layer.attend(q, k, torch.full_like(v, 3.0), context)
    assert float(out[:2].detach().float().sub(3.0).abs().max()) <= 2**-5
    gradients = torch.autograd.grad(out.sum(), (q, k))
    assert not bool(out[2].any() or gradients[0][2].any() or gradients[1][2].any())


@kernels
@directions
def test_masked_keys_count_for_nothing(case, causal, layer_of, inputs, half_padded) -> None:
    """Neither huge ones, nor tiny ones between huge ones; to the last bit, gradients too."""
    layer, mask = layer_of(case), half_padded(3, SPLIT)
    found = []
    for fill in (0.0, 50.0):
        q, k, v = inputs(3, SPLIT)
        with torch.no_grad():
            for x in (k, v):
                x.masked_fill_(~mask[:, None, :, None], fill)
        out, _ = layer.attend(q, k, v, Context(causal, key_mask_BM=mask))
        gradients = torch.autograd.grad(out.float().square().sum(), (q, k, v))
        assert not any(bool(x.masked_select(~mask[:, None, :, None]).any()) for x in gradients[1:])
        found.append((out, *gradients))
    assert all(torch.equal(*pair) for pair in zip(*found, strict=True))


@kernels
@directions
@pytest.mark.parametrize("place", [0, 140, SPLIT - 1])
def test_a_huge_key_stays_finite_and_close(case, causal, place, layer_of, inputs) -> None:
    layer, qkv = layer_of(case), inputs(1, SPLIT)
    with torch.no_grad():
        qkv[1][:, :, place] *= 40.0
    found = errors(layer, qkv, Context(causal))
    assert all(x < 2 * most for x, most in zip(found, LIMITS, strict=True)), found


@directions
def test_keys_may_all_be_huge(causal, layer_of, inputs) -> None:
    """Their softmax features lie below the smallest float, the scale of masked keys does not."""
    layer, (q, k, v) = layer_of(SOFTMAX), inputs(1, SPLIT)
    mask = torch.ones(1, SPLIT, dtype=torch.bool)
    mask[:, [0, 140]] = False
    with torch.no_grad():
        k *= 40.0
        k[:, :, [0, 140]] = 0.0
    context = Context(causal, key_mask_BM=mask)
    wanted, _ = layer.oracle(q, k, v, context)
    out, _ = layer.attend(q, k, v, context)
    assert error(out, wanted) < LIMITS[0]
    gradients = torch.autograd.grad(out.float().square().sum(), (q, k, v))
    assert all(bool(x.isfinite().all()) for x in gradients)


@directions
def test_features_that_underflow_give_zero_and_finite_gradients(causal, layer_of, inputs) -> None:
    q, k, v = inputs(1, 200)
    for shifted in ((q - 100.0, k), (q, k - 100.0), (q - 1e4, k - 1e4)):
        out, _ = layer_of(LINEAR).attend(*shifted, v, Context(causal))
        gradients = torch.autograd.grad(out.float().square().sum(), (q, k, v))
        assert not bool(out.any()) and all(bool(x.isfinite().all()) for x in gradients)


def test_small_features_keep_their_digits(layer_of) -> None:
    """elu(x) + 1 in bfloat16 is 0 or a multiple of 0.004 at x = -9."""
    q = torch.ones(1, 2, 2, WIDTH, dtype=torch.bfloat16)
    k = torch.stack([torch.full((1, 2, WIDTH), -9.0), torch.full((1, 2, WIDTH), -10.0)], 2)
    v = torch.tensor([1.0, 0.0], dtype=torch.bfloat16).view(1, 1, 2, 1).expand(1, 2, 2, WIDTH)
    out, _ = layer_of(LINEAR).attend(q, k.bfloat16(), v, Context())
    assert (out.float() - 1 / (1 + torch.tensor(-1.0).exp())).abs().max() < 0.005


@kernels
@directions
def test_the_last_of_many_keys_still_count(case, causal, layer_of) -> None:
    """Running sums in bfloat16 stop growing at 256."""
    v = torch.zeros(1, 2, 9000, WIDTH, dtype=torch.bfloat16)
    v[:, :, 4500:] = 1.0
    q = k = torch.full_like(v, 0.5)
    out, _ = layer_of(case).attend(q, k, v, Context(causal))
    assert out[:, :, -1].float().sub(0.5).abs().max() < 4e-3


@kernels
@directions
def test_launches_do_not_grow_with_the_length_and_memory_is_linear(
    case, causal, layer_of, inputs, watched
) -> None:
    seen = []
    for length in (8 * PART, 64 * PART):
        with watched() as calls:
            out, _ = layer_of(case).attend(*inputs(1, length), Context(causal))
            out.float().square().sum().backward()
        seen.append(calls)
    assert seen[0].calls == seen[1].calls < 400
    assert seen[1].elements <= 8.1 * seen[0].elements


@pytest.mark.filterwarnings("ignore:.*should not be instantiated")  # the compiler's own doing
@pytest.mark.parametrize("case", KERNELS[:3], ids=lambda case: "-".join(map(str, case)))
@directions
def test_the_compiler_takes_it_whole(case, causal, layer_of, half_padded) -> None:
    """No code is generated."""
    torch.compiler.reset()
    layer, mask = layer_of(case), half_padded(2, SPLIT)
    x = torch.randn(2, SPLIT, 12, dtype=torch.bfloat16, requires_grad=True)
    context = Context(causal, query_mask_BN=mask)
    compiled = torch.compile(layer, backend="aot_eager", fullgraph=True)
    outs = [layer(x, context).y_BND, compiled(x, context).y_BND]
    upstream = torch.randn_like(outs[0])
    gradients = [torch.autograd.grad(out, x, upstream)[0] for out in outs]
    assert error(outs[1], outs[0]) < LIMITS[0] and error(gradients[1], gradients[0]) < LIMITS[0]


@pytest.mark.usefixtures("on_gpu")
def test_heads_too_wide_for_fused_attention_run_in_float32(build, draw) -> None:
    assert fits(WIDEST - 8, WIDEST - 8) and not fits(WIDEST, WIDEST)
    layer = build(SOFTMAX, dtype=torch.bfloat16, qkv_width=2 * WIDEST)
    qkv = [x.detach().bfloat16().requires_grad_() for x in draw(1, 9, width=WIDEST)]
    assert errors(layer, qkv, Context())[0] < LIMITS[0]


def test_a_cpu_computes_in_float32(build, inputs) -> None:
    """Its output for bfloat16 is that for the same numbers in float32, rounded."""
    for case in KERNELS:
        layer, qkv = build(case, dtype=torch.float32, qkv_width=2 * WIDTH), inputs(2, 200)
        for causal in (False, True):
            found, _ = layer.attend(*qkv, Context(causal))
            exact, _ = layer.attend(*(x.float() for x in qkv), Context(causal))
            assert torch.equal(found, exact.bfloat16())


def test_which_inputs_are_taken_in_half_precision(monkeypatch) -> None:
    there = {x: torch.empty(1, dtype=x) for x in (torch.bfloat16, torch.float16, torch.float32)}
    half = there[torch.bfloat16]
    assert not halves(half)
    monkeypatch.setattr(_products, "accelerated", lambda device: True)
    assert halves(half, half, half) and not halves(half, half, there[torch.float32])
    assert not halves(there[torch.float16]) and not halves(there[torch.float32])


@pytest.mark.parametrize(("capability", "fast"), [((7, 5), False), ((8, 0), True), ((9, 0), True)])
def test_gpus_before_ampere_compute_in_float32(capability, fast, monkeypatch) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    assert accelerated(torch.device("cuda", 0)) == fast and not accelerated(torch.device("cpu"))


def test_a_compiler_takes_a_device_for_a_constant() -> None:
    torch.compiler.reset()
    compiled = torch.compile(
        lambda x: x + accelerated(x.device), backend="aot_eager", fullgraph=True
    )
    assert torch.equal(compiled(torch.ones(2)), torch.ones(2))


def test_few_heads_are_cut_into_parts_and_many_are_not() -> None:
    assert parts(65536, 4) == 64 and parts(1024, 256) == 1
    assert parts(PART - 1, 1) == parts(0, 4) == parts(1, 0) == 1
