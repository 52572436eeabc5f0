"""Our mechanisms against public implementations of them: one training pass of the layer.

Forward and backward with the query, key, value and output projections; float32, 2 threads, width
256. Ours, the peer, the floor (no mixing) and fused attention run in interleaved rounds of one
process (`paired`); peak memory is that of fresh processes. The goal: (ours - floor) at most 0.8 of
(peer - floor) where the peer is 0.1 of fused attention above the floor, ours at most the peer
elsewhere; memory at most the peer's, or within 10 % of the floor's. Nothing is asserted: timings
are read. A disturbed round is rejected and counted.

`pytest tests/benchmarks/test_against_peers.py -m peers --benchmark-only -s`, or
`python tests/benchmarks/test_against_peers.py [--rounds 20] [--rows ...] [--shapes ...]`.
Needs the packages of `lra/peers`; a row whose package is missing is skipped.
"""

from __future__ import annotations

import argparse
import inspect
import textwrap
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from types import MethodType
from typing import Any

import pytest
import torch
from paired import Pass, Rounds, peak_mib, table_line
from torch import Tensor, nn

from attention_impls.contract import Context, Dims, Layer
from lra.adapters.adapt import load
from lra.core.catalogue import find
from lra.core.errors import LraError

WIDTH, THREADS, ROUNDS, WARM_LENGTH = 256, 2, 20, 1024

pytestmark = [
    pytest.mark.peers,
    # Other people's code, and the packages below it.
    pytest.mark.filterwarnings("ignore"),
]


@dataclass(frozen=True)
class Shape:
    """The input."""

    length: int
    batch: int = 1
    head_width: int = 64
    padded: bool = False
    """Whether rows are of unequal length, the last of about half of it."""


SHAPES = {
    "4096": Shape(4096),
    "8192": Shape(8192),
    "4001": Shape(4001),
    "4 x 2048": Shape(2048, batch=4),
    "4 x 2048, padded": Shape(2048, batch=4, padded=True),
    "4096, heads of 32": Shape(4096, head_width=32),
}
"""The first two are the goal's own."""


def without_rotary(layer: Any) -> None:
    """Take the rotary positions out of local-attention's module, which has no argument for it."""
    layer.inner.bidirectional.attn_fn.rel_pos = None


def sorts_values(layer: Any) -> None:
    """Let the Sinkhorn Transformer's package read sorted values, as its paper has them: its release
    0.11.4 takes the sorted keys in their place, and computes no gradient of the values' mix."""
    attention = layer.inner.bidirectional.sinkhorn_attention
    source = textwrap.dedent(inspect.getsource(type(attention).forward))
    slip, meant = "b_v_r = b_k_r.reshape(bh", "b_v_r = b_v_r.reshape(bh"
    assert slip in source, "another release: see what it reads"
    names = dict(vars(inspect.getmodule(type(attention))))
    exec(source.replace(slip, meant), names)
    attention.forward = MethodType(names["forward"], attention)


def first_is_global(layer: Any) -> None:
    """Make the first position global in Hugging Face's Longformer, as its classifier does."""

    def ask(module: nn.Module, args: Any, named: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        mask_BN, nowhere_BN = named["attention_mask"].clone(), named["is_index_global_attn"]
        mask_BN[:, 0] = 10000.0
        chosen_BN = nowhere_BN.index_fill(1, torch.tensor([0]), True)
        return args, named | {
            "attention_mask": mask_BN,
            "is_index_global_attn": chosen_BN,
            "is_global_attn": True,
        }

    inner = layer.inner.bidirectional.attention
    inner.register_forward_pre_hook(ask, with_kwargs=True)


@dataclass(frozen=True)
class Row:
    """One of ours beside one of theirs, with settings that make them do the same work."""

    ours: str
    config: dict[str, Any]
    peer: str
    settings: dict[str, Any]
    change: Callable[[Any], None] | None = None
    """A change that no setting of the peer reaches."""
    output: bool = False
    """Whether the peer leaves out the output projection, so that it gets one here."""
    bar: float = 0.8
    """Above the floor."""


# No mask where nothing is padded, and no more padding than the peer needs: the adapters' defaults
# are for short inputs and equal results.
PLAIN = {"always_mask": False}
ROWS = {
    "longformer": Row(
        "longformer", {"window": 512, "leading": 0},
        "peer:hf_longformer", {"window": 512}, output=True,
    ),
    "longformer, 1 global": Row(
        "longformer", {"window": 512, "leading": 1},
        "peer:hf_longformer", {"window": 512}, first_is_global, output=True,
    ),
    "bigbird": Row(
        "bigbird", {"block": 64, "random": 3},
        "peer:hf_bigbird", {"block_size": 64, "random_blocks": 3, "pad_to": 64}, output=True,
    ),
    "nystromformer": Row(
        "nystromformer", {"landmarks": 64, "convolution": 33},
        "peer:nystrom_attention", {"num_landmarks": 64, **PLAIN},
    ),
    "reformer": Row(
        "reformer", {"chunk": 64, "rounds": 4},
        "peer:reformer_pytorch", {"bucket_size": 64, "n_hashes": 4, **PLAIN},
    ),
    # The peer's default takes the best block of all and does no iterations; in all its settings the
    # sorted values are its keys.
    "sinkhorn": Row(
        "sinkhorn", {"block": 64, "iterations": 7},
        "peer:sinkhorn_transformer", {"bucket_size": 64, **PLAIN}, bar=1.0,
    ),
    "sinkhorn, its iterations": Row(
        "sinkhorn", {"block": 64, "iterations": 7}, "peer:sinkhorn_transformer",
        {"bucket_size": 64, "non_permutative": False, "sinkhorn_iter": 7, **PLAIN}, bar=1.0,
    ),
    "sinkhorn, like for like": Row(
        "sinkhorn", {"block": 64, "iterations": 7}, "peer:sinkhorn_transformer",
        {"bucket_size": 64, "non_permutative": False, "sinkhorn_iter": 7, **PLAIN}, sorts_values,
    ),
    "sliding_window": Row(
        "sliding_window", {"left": 128, "right": 128},
        "peer:local_attention", {"window_size": 128, **PLAIN}, without_rotary,
    ),
    "linformer": Row("linformer", {"rank": 256}, "peer:linformer", {"k": 256}),
    "performer": Row(
        "performer", {"features": 256}, "peer:performer_pytorch", {"nb_features": 256}
    ),
    "performer, relu": Row(
        "performer", {"kernel": "relu", "features": 256},
        "peer:performer_pytorch_relu", {"nb_features": 256},
    ),
    # Softmax on queries and keys and no denominator: another function.
    "linear": Row("linear", {}, "peer:linear_attention_transformer", {}, bar=1.0),
}  # fmt: skip


class Whole(nn.Module):
    """A layer, and the output projection where it lacks one."""

    def __init__(self, layer: Layer, *, add_output: bool) -> None:
        super().__init__()
        self.layer = layer
        self.output = nn.Linear(WIDTH, WIDTH) if add_output else nn.Identity()

    def forward(self, x_BND: Tensor, context: Context) -> Tensor:
        out_BND: Tensor = self.output(self.layer(x_BND, context).y_BND)
        return out_BND


def mechanism_of(name: str, who: str) -> tuple[type[Layer], dict[str, Any]]:
    """Return a row's `floor`, `fused`, `ours` or `peer`, and its settings.

    Raises `LraError` for a peer whose package is not installed.
    """
    row = ROWS[name]
    reference, settings = {
        "floor": ("identity", {}),
        "fused": ("sdpa", {}),
        "ours": (row.ours, row.config),
        "peer": (row.peer, row.settings),
    }[who]
    return load(find("mechanism", reference)), settings


def training_pass(name: str, who: str, shape: Shape) -> Pass:
    """Return a function that runs one forward and backward pass of the layer."""
    (mechanism, settings), row = mechanism_of(name, who), ROWS[name]
    torch.manual_seed(0)
    dims = Dims(WIDTH, WIDTH, WIDTH // shape.head_width, max_length=shape.length)
    layer = mechanism(dims, mechanism.Config(**settings))
    if who == "peer" and row.change is not None:
        row.change(layer)
    whole = Whole(layer, add_output=who == "peer" and row.output)
    x = torch.randn(shape.batch, shape.length, WIDTH, requires_grad=True)
    upstream, context = torch.randn_like(x), Context(query_mask_BN=mask(shape))

    def step() -> None:
        whole(x, context).backward(upstream)
        x.grad = None
        whole.zero_grad(set_to_none=True)

    return step


def mask(shape: Shape) -> Tensor | None:
    """Return which positions are real: fewer with each row, down to half; None for all."""
    if not shape.padded:
        return None
    real_B = torch.linspace(shape.length, shape.length // 2, shape.batch).long()
    return torch.arange(shape.length) < real_B[:, None]


def pass_for_memory(name: str, who: str, shape: Shape, small: bool) -> Pass:
    """Return the pass, or a short one of its kind."""
    return training_pass(name, who, replace(shape, length=WARM_LENGTH) if small else shape)


def peaks(name: str, shape: Shape) -> dict[str, float]:
    """Return the peak MiB of ours, the peer and the floor."""
    return {
        who: peak_mib(partial(pass_for_memory, name, who, shape), THREADS)
        for who in ("ours", "peer", "floor")
    }


def why_not(name: str, shape: Shape) -> str:
    """Say why a row cannot be measured at a shape; empty where it can."""
    try:
        both = [mechanism_of(name, who)[0] for who in ("ours", "peer")]
    except LraError as error:
        return str(error)
    if shape.padded and any(one.card.capabilities.padding == "none" for one in both):
        return "one of the two cannot mask padding"
    return ""


def rounds_of(name: str, shape: Shape) -> Rounds:
    """Return the four passes, ready to be interleaved."""
    return Rounds(
        {who: training_pass(name, who, shape) for who in ("floor", "fused", "peer", "ours")}
    )


@pytest.mark.parametrize("at", SHAPES)
@pytest.mark.parametrize("name", ROWS)
def test_against_peer(name: str, at: str, benchmark: Any, threads: None) -> None:
    shape = SHAPES[at]
    if why := why_not(name, shape):
        pytest.skip(why)
    benchmark.group = f"ours beside peers, forward and backward, {at}"
    rounds = rounds_of(name, shape)
    benchmark.pedantic(
        rounds.ours, setup=rounds.before, teardown=rounds.after, rounds=ROUNDS, warmup_rounds=0
    )
    found, mib = rounds.comparison(), peaks(name, shape)
    benchmark.extra_info |= {**asdict(found), "peak_mib": mib}
    print("\n" + table_line(f"{name}, {at}", found, mib, ROWS[name].bar))


def main() -> None:
    """Print a line per row and shape."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS))
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=["4096", "8192"])
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(THREADS)
    for at in asked.shapes:
        for name in asked.rows:
            if why := why_not(name, SHAPES[at]):
                print(f"{name}, {at}: {why}")
                continue
            rounds = rounds_of(name, SHAPES[at])
            for _ in range(asked.rounds):
                rounds.before()
                rounds.ours()
                rounds.after()
            found, mib = rounds.comparison(), peaks(name, SHAPES[at])
            print(table_line(f"{name}, {at}", found, mib, ROWS[name].bar), flush=True)


if __name__ == "__main__":
    main()
