"""Words on all that was read into the signatures of somebody's class."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lra.adapters.external import External, is_causal_by_pair_mask
from lra.adapters.masks import MaskedConfig

MASKS = {
    "key_mask": "which keys are padding",
    "source_mask": "which keys of another sequence are padding",
    "pairs_mask": "which query may read which key",
}
MEANINGS = {
    "keep": "True = attend",
    "ignore": "True = ignore",
    "ones": "1 = attend, 0 = ignore",
    "additive": "0 = attend, the least finite number = ignore",
}


def assumed(
    stranger: External,
    config: MaskedConfig,
    claims: Mapping[str, Any],
    *,
    is_module: bool,
    crosses: bool,
) -> Iterator[str]:
    """Yield what was read into its signatures, in this configuration, a line each; `claims` are
    those in place of claims that were read."""
    sizes, asks = stranger.sizes, stranger.asks
    built_with = [*((name, role) for role, name in sizes.items()), *stranger.further_sizes.items()]
    if built_with:
        yield "built with " + ", ".join(f"{name} = {_said(role)}" for name, role in built_with)
    unused = set() if crosses else {"source_mask"}
    if is_module and not is_causal_by_pair_mask(stranger):
        unused.add("pairs_mask")
    for role, whom in MASKS.items():
        if role in asks and role not in unused:
            per_head = config.mask_per_head and role != "pairs_mask"
            shape = " (B, 1, 1, M)" if per_head else ""
            meaning = MEANINGS[config.mask_form or stranger.habit(asks[role])]
            yield f"{asks[role]}{shape}: {whom}; {meaning}"
    tables = [asks[role] for role in ("rotary", "cosines", "sines") if role in asks]
    if tables:
        yield f"{' and '.join(tables)}: tables of rotary positions, cosines and sines, (1, N, K)"
    if "causal" in sizes:
        yield f"two instances with the same parameters, {sizes['causal']} false and true"
    elif "causal" in asks and not is_causal_by_pair_mask(stranger):
        yield f"{asks['causal']}: True = no position reads a later one"
    if "need_weights" in stranger.call:
        yield "called with need_weights = False"
    if is_module and "key_mask" in asks:
        yield "outputs of padded positions are set to zero here, whatever it returns there"
    if stranger.note:
        yield stranger.note
    for claim, value in claims.items():
        yield (
            f"taken not to claim {claim}" if value is False else f"taken to claim {claim} = {value}"
        )


def _said(role: str) -> str:
    return {"source_width": "width", "key_heads": "the default's share of heads"}.get(role, role)
