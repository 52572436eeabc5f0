"""The bits that the best prediction of a ledger pays, by the grammar's own weights.

R documents, N symbols, S different symbols
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tasks.generators.ledger import SYMBOLS, Ledger


def surprise(texts_RN: npt.NDArray[np.uint8]) -> npt.NDArray[np.float64]:
    """Return -log2 of each byte's probability after those before it, in bits, (R, N): what the best
    possible prediction pays. Infinite where a text is none of this grammar."""
    ledger = Ledger(len(texts_RN))
    numbers = np.full(256, -1)
    numbers[list(SYMBOLS)] = np.arange(len(SYMBOLS))
    paid_RN = np.zeros(texts_RN.shape)
    rows_R = np.arange(len(texts_RN))
    for place in range(texts_RN.shape[1]):
        weights_RS = ledger.weights()
        symbols_R = numbers[texts_RN[:, place]]
        mine_R = np.where(symbols_R < 0, 0, weights_RS[rows_R, symbols_R])
        with np.errstate(divide="ignore"):
            paid_RN[:, place] = np.log2(weights_RS.sum(axis=1)) - np.log2(mine_R)
        ledger.take(np.where(mine_R > 0, symbols_R, weights_RS.argmax(axis=1)))
    return paid_RN
