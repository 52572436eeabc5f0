"""Roles of parameters, read from the names that other people's code gives them.

Names are all that a signature offers; every result lists what was read into them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from torch import nn

SIZES: dict[str, tuple[str, ...]] = {
    "width": (
        "dim", "embed_dim", "d_model", "model_dim", "dim_model", "hidden_size", "hidden_dim",
        "embedding_dim", "emb_dim", "embed_size", "n_embd", "width", "in_features", "query_dim",
        "q_dim",
    ),
    "source_width": ("kv_dim", "context_dim"),
    "heads": (
        "heads", "num_heads", "n_heads", "nhead", "n_head", "num_attention_heads", "nheads",
        "encoder_attention_heads",
    ),
    "head_width": (
        "dim_head", "head_dim", "dim_heads", "d_head", "head_size", "dim_per_head", "d_k",
        "attention_head_size",
    ),
    "dropout": (
        "dropout", "attn_dropout", "attention_dropout", "dropout_p", "dropout_rate", "attn_drop",
        "attention_probs_dropout_prob", "attention_probs_dropout", "attn_pdrop", "attn_dropout_p",
        "attn_dropout_rate", "attention_dropout_rate", "dropout_prob",
    ),
    "output_dropout": (
        "resid_pdrop", "resid_dropout", "residual_dropout", "hidden_dropout_prob", "hidden_dropout",
        "proj_drop", "proj_dropout", "out_dropout", "output_dropout",
    ),
    "max_length": (
        "max_seq_len", "seq_len", "max_length", "max_len", "max_sequence_length", "seq_length",
        "max_position_embeddings", "n_ctx", "context_length", "length",
        "max_encoder_position_embeddings",
    ),
    "layer_index": ("layer_id", "layer_idx", "layer_index", "layer_number"),
    "layers": (
        "depth", "num_hidden_layers", "n_layers", "num_layers", "n_layer", "encoder_layers",
    ),
    "causal": ("causal", "is_causal", "autoregressive"),
}  # fmt: skip
"""Names of constructor parameters, or of fields of a configuration object, that the model around it
decides, by role."""

KEY_HEADS = ("num_key_value_heads", "num_kv_heads", "n_kv_heads", "kv_heads", "n_head_kv")
"""Names of the number of heads of keys and values in a configuration object, where queries may have
more."""

CALL: dict[str, tuple[str, ...]] = {
    "query": ("query", "q", "queries"),
    "key": ("key", "k", "keys"),
    "value": ("value", "v", "values"),
    "source": (
        "context", "memory", "source", "encoder_hidden_states", "key_value_states", "kv",
        "x_kv", "kv_input", "inputs",
    ),
    "key_mask": (
        "key_padding_mask", "src_key_padding_mask", "padding_mask", "pad_mask", "mask",
        "input_mask", "key_mask", "token_mask", "attention_mask",
    ),
    "source_mask": (
        "context_mask", "memory_mask", "source_mask", "encoder_attention_mask", "inputs_mask",
    ),
    "pairs_mask": ("attn_mask", "att_mask", "src_mask"),
    "causal": ("is_causal", "causal"),
    "rotary": ("position_embeddings",),
    "cosines": ("cos",),
    "sines": ("sin",),
}  # fmt: skip
"""Names of a call's parameters, by role."""

IGNORED = {"key_padding_mask", "src_key_padding_mask", "padding_mask", "pad_mask"}
"""Names of masks that say, by torch's habit, which keys to ignore; others say which to attend
to."""


def is_ignored(name: str) -> bool:
    """Return whether a mask of this name usually says which keys to ignore."""
    return name.lower() in IGNORED


def names_by_role(names: Mapping[str, Any], known: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """Return, by role, the first known name that is among `names`, whatever its capitals; of two
    that differ only in capitals, the one spelled as in `known`."""
    spelled = {name.lower(): name for name in reversed(list(names))}
    spelled |= {name: name for name in names}
    found: dict[str, str] = {}
    for role, candidates in known.items():
        for name in (spelled[candidate] for candidate in candidates if candidate in spelled):
            if name not in found.values():
                found[role] = name
                break
    return found


def parameters(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Return the named parameters of a function, without `self`.

    Empty where there is no signature, as for functions written in C.
    """
    return {n: p for n, p in _all_parameters(function).items() if p.kind not in _OPEN}


def parameters_of(kind: type, method: str) -> dict[str, inspect.Parameter]:
    """Return the named parameters of a method; where it hands its arguments on, also those of the
    methods that it may hand them to.

    Where the method has required parameters of its own, those of the others are left out: it
    supplies them.
    """
    found: dict[str, inspect.Parameter] = {}
    for base in kind.__mro__:
        function = vars(base).get(method)
        if function is None or base in (nn.Module, object):
            continue
        named = parameters(function)
        if any(p.default is p.empty for p in found.values()):
            named = {n: p for n, p in named.items() if p.default is not p.empty}
        found |= {n: p for n, p in named.items() if n not in found}
        if not takes_any(function):
            break
    return found


def takes_any(function: Callable[..., Any]) -> bool:
    """Return whether it takes more arguments than it names."""
    return any(p.kind in _OPEN for p in _all_parameters(function).values())


_OPEN = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def _all_parameters(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    try:
        found = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return {}
    return {n: p for n, p in found.items() if n != "self"}
