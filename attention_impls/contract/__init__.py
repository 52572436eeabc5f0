"""The attention contract: a layer that mixes positions.

To add a mechanism, write one file beside the others that defines one public `Attention` subclass
with a `card`, a `Config` and an `attend`; read `dense/full.py` first. The shape suffixes below are
the contract's vocabulary:

    B batch   N queries   M keys   D model width   H heads   G heads of keys and values
    K width of a query or key head   V width of a value head   P projected (compressed) keys
    R features

Masks are boolean and True means "may be attended to"; a row with nothing to attend to gives zero
with finite gradients. The contents of padded positions never matter: the base zeroes them on the
way in and on the way out.
"""

from attention_impls.contract.attention import Attention
from attention_impls.contract.dims import Dims
from attention_impls.contract.layer import Layer
from attention_impls.contract.mixer import Mixer
from attention_impls.contract.position import Position
from attention_impls.contract.tensors import (
    causal_mask,
    default_scale,
    merge_heads,
    position_ids,
    seen,
    select_rows,
    split_heads,
    zero_padding,
)
from attention_impls.contract.values import (
    Context,
    Convergence,
    CrossState,
    Exact,
    Heads,
    MechanismConfig,
    Out,
)

__all__ = [
    "Attention",
    "Context",
    "Convergence",
    "CrossState",
    "Dims",
    "Exact",
    "Heads",
    "Layer",
    "MechanismConfig",
    "Mixer",
    "Out",
    "Position",
    "causal_mask",
    "default_scale",
    "merge_heads",
    "position_ids",
    "seen",
    "select_rows",
    "split_heads",
    "zero_padding",
]
