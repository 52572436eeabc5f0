"""On a GPU nobody waits for what a tensor holds: shapes and branches follow from sizes alone."""

from __future__ import annotations

import sys

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from attention_impls.contract import Context

PADDED = {
    "block_local": {"block": 4},
    "longformer": {"window": 6},
    "reformer": {"chunk": 4, "rounds": 2},
    "sinkhorn": {"block": 4},
    "sliding_window": {"left": 5, "right": 3},
    "sparse_fixed": {"stride": 5, "summary": 2},
    "sparse_strided": {"stride": 5},
}
BARE = {"bigbird": {"block": 2, "random": 1}}
"""Has to be told how long each example is."""


@pytest.mark.parametrize("name", [*PADDED, *BARE])
def test_no_value_is_asked_for(name: str, build, monkeypatch, small_tiles) -> None:
    """Tensors without values raise when asked for one; the ways taken are those of a GPU."""
    layer = build((name, PADDED.get(name, BARE.get(name))))
    for module in [m for key, m in sys.modules.items() if key.startswith("attention_impls.")]:
        if hasattr(module, "needs_autograd"):
            monkeypatch.setattr(module, "needs_autograd", lambda q, position: True)
    x = torch.randn(2, 37, 12, dtype=torch.float64)
    layer(x, Context())  # draws that are made once
    with FakeTensorMode(allow_non_fake_inputs=True) as fake, torch.no_grad():
        x = fake.from_tensor(x)
        mask = torch.ones(2, 37, dtype=torch.bool) if name in PADDED else None
        for causal in (False, True):
            if not causal or layer.card.capabilities.causal != "no":
                context = Context(causal, query_mask_BN=mask)
                assert layer(x, context).y_BND.shape == (2, 37, 12)
