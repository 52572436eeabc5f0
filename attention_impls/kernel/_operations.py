"""How many operations kernel attention takes, by formula; what `_attend` computes, per head.

N positions   V value width   R features   U = V + 1: the values and a column of ones
"""

from __future__ import annotations

from torch import Tensor

from attention_impls.kernel._causal import CHUNK, SPAN_CHUNKS
from attention_impls.kernel._tiles import spans, tile_rows


def kernel_operations(n: int, features: int, values: int, *, causal: bool, like: Tensor) -> int:
    """Operations of one head from its features on; `like` lies on the device of the inputs.

    Bidirectional, 2 N R U to sum [V, 1]^T phi(K) and as many to read it. Causal, the same, the
    pairs within each chunk, and for each span of chunks a product that sums their states.
    """
    total = 2 * 2 * n * features * (values + 1)
    if not causal:
        return total
    step = min(tile_rows(like, features), SPAN_CHUNKS * CHUNK)
    for span in spans(n, step, CHUNK):
        length = span.stop - span.start
        chunk = min(CHUNK, length)
        states = length // chunk + 1
        total += 2 * length * chunk * (features + values)
        total += 2 * states**2 * (values + 1) * features
    return total
