"""Shared heads of keys: their gradients, the cache that holds them, and where they are copied."""

from __future__ import annotations

import pytest
import torch

from attention_impls.contract import Context
from attention_impls.dense import _grouped
from lra.core.catalogue import find
from lra.core.errors import UsageError
from lra.core.loading import load

CPU = torch.device("cpu")


@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("threads", [1, 8])
@pytest.mark.parametrize("m", [3, 1])
def test_a_groups_gradient_is_the_sum_of_its_heads(
    groups, threads, m, build, draw, monkeypatch
) -> None:
    """With copies for the kernel, without them, and folded for a single query."""
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    layer = build(("grouped_query", {"kv_heads": groups}), heads=4)
    q = draw(2, m, heads=4)[0]
    k, v = draw(2, 5, heads=groups)[1:]
    copies = [x.detach().repeat_interleave(4 // groups, 1).requires_grad_() for x in (k, v)]
    shared, _ = layer.attend(q, k, v, Context())
    separate, _ = layer.attend(q, *copies, Context())
    torch.testing.assert_close(shared, separate)
    upstream = torch.randn(shared.shape, dtype=shared.dtype)
    found = torch.autograd.grad(shared, (k, v), upstream)
    wanted = torch.autograd.grad(separate, copies, upstream)
    for actual, apart in zip(found, wanted, strict=True):
        torch.testing.assert_close(actual, apart.unflatten(1, (groups, -1)).sum(2))


@pytest.mark.parametrize(
    ("case", "heads", "kept"),
    [
        (("grouped_query", {}), 8, 4),
        (("grouped_query", {}), 3, 1),
        (("grouped_query", {}), 1, 1),
        (("grouped_query", {"kv_heads": 2}), 8, 2),
        (("multi_query", {}), 8, 1),
    ],
)
def test_the_cache_and_the_projections_hold_the_groups_alone(case, heads, kept, build) -> None:
    layer = build(case, heads=heads, qkv_width=8 * heads)
    state = layer.init_state(2, length=7, device=CPU, dtype=torch.float64)
    assert state.k_BHTK.shape == state.v_BHTV.shape == (2, kept, 7, 8)
    assert layer.key.out_features == layer.value.out_features == 8 * kept


def test_groups_that_do_not_divide_the_heads_are_refused_in_one_line(build) -> None:
    with pytest.raises(UsageError, match=r"\b3 kv_heads.*\b8\b") as refusal:
        build(("grouped_query", {"kv_heads": 3}), heads=8)
    assert "\n" not in str(refusal.value)


@pytest.fixture
def elsewhere(monkeypatch) -> list[int]:
    """Make tensors say that they are on no CPU; gives the heads of keys that the kernel is given,
    call by call."""
    given: list[int] = []
    fused = _grouped.fused_softmax

    def spied(q_BHNK, k_BGMK, *rest, **named):
        given.append(k_BGMK.shape[1])
        return fused(q_BHNK, k_BGMK, *rest, **named)

    monkeypatch.setattr(_grouped, "fused_softmax", spied)
    monkeypatch.setattr(torch.Tensor, "is_cpu", False)
    return given


MASK = torch.ones(2, 6, dtype=torch.bool)


@pytest.mark.parametrize(
    ("dtype", "asked", "queries", "given"),
    [
        (torch.bfloat16, {}, 6, 2),
        (torch.float16, {"causal": True}, 6, 2),
        (torch.bfloat16, {"causal": True}, 4, 4),
        (torch.bfloat16, {"key_mask_BM": MASK}, 6, 4),
        (torch.bfloat16, {"mask_BNM": MASK[:, None].expand(2, 6, 6)}, 6, 4),
        (torch.bfloat16, {"position": "rope"}, 6, 2),
        (torch.bfloat16, {"position": "alibi"}, 6, 4),
        (torch.float32, {}, 6, 4),
        (torch.float32, {"causal": True}, 1, 2),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else str(value),
)
def test_off_the_cpu_keys_are_copied_where_no_fused_kernel_shares_them(
    dtype, asked, queries, given, build, draw, elsewhere
) -> None:
    layer = build(("grouped_query", {"kv_heads": 2}), heads=4)
    if "position" in asked:
        asked = {"position": load(find("position", asked["position"]))(layer.dims)}
    q = draw(2, queries, heads=4, dtype=dtype)[0]
    k, v = draw(2, 6, heads=2, dtype=dtype)[1:]
    out, _ = layer.attend(q, k, v, Context(**asked))
    assert elsewhere == [given]
    apart, _ = layer.attend(q, *(x.repeat_interleave(2, 1) for x in (k, v)), Context(**asked))
    torch.testing.assert_close(out, apart)


@pytest.mark.parametrize("case", [("grouped_query", {"kv_heads": 4}), ("multi_query", {})])
def test_off_the_cpu_as_many_heads_of_keys_as_of_queries_are_not_copied(
    case, build, draw, elsewhere, monkeypatch
) -> None:
    heads = case[1].get("kv_heads", 1)
    monkeypatch.setattr(torch.Tensor, "repeat_interleave", None)
    layer = build(case, heads=heads, qkv_width=8 * heads)
    layer.attend(*draw(2, 6, heads=heads), Context())
    assert elsewhere == [heads]


def test_off_the_cpu_a_prompt_is_remembered_by_group(build, elsewhere) -> None:
    layer = build(("grouped_query", {"kv_heads": 2}), heads=4)
    x, mask = torch.randn(2, 9, 12, dtype=torch.float64), torch.ones(2, 9, dtype=torch.bool)
    mask[1, 6:] = False
    with torch.no_grad():
        whole = layer(x, Context(causal=True, query_mask_BN=mask)).y_BND
        state, parts = layer.init_state(2, length=9, device=CPU, dtype=x.dtype), []
        for piece in (slice(0, 5), slice(5, 9)):
            context = Context(causal=True, query_mask_BN=mask[:, piece])
            found = layer(x[:, piece], context, state=state)
            state, _ = found.state, parts.append(found.y_BND)
    assert elsewhere == [4, 4, 4] and state.k_BHTK.shape[1] == 2
    torch.testing.assert_close(torch.cat(parts, 1)[mask], whole[mask])
