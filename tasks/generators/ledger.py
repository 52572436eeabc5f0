"""Ledgers: text of a small grammar whose next byte depends on bytes far behind it.

A line is one of

    +ab37;      the name ab now has the value 37
    ?ab37;      a name that was given before, with the last value it was given
    ([{}]());   brackets that close in the reverse order of their opening

so that lines of the second kind ask to look up, and those of the third to count and to stack. All
that is drawn is drawn from integer weights, symbol after symbol: the weights of the next symbol
after any beginning are known, and with them what the best prediction would cost.

R documents, N symbols, S different symbols
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tasks.generators.counter import U64, bits

SYMBOLS = b"abcdefghijklmnopqrstuvwxyz0123456789+?;([{)]}"
DEEPEST = 12
"""Brackets open at a time, at most."""

_LETTERS, _DIGITS = 26, 10
_DIGIT = _LETTERS
_DEFINE, _ASK, _END = (SYMBOLS.index(symbol) for symbol in b"+?;")
_OPEN, _CLOSE = SYMBOLS.index(b"("), SYMBOLS.index(b")")
_KINDS = 3
_LINE = {_DEFINE: 9, _ASK: 12}
"""Weights of the first symbol of a line; each opening bracket has 3."""
_BRACKET = 3
_OPENING, _CLOSING = 2, 9
"""Weights of opening a bracket of one kind within another, and of closing that."""

_AT_LINE, _AT_FIRST, _AT_SECOND, _AT_TENS, _AT_ONES, _AT_END, _IN_BRACKETS = range(7)

Ints = npt.NDArray[np.int64]


class Ledger:
    """Where each of R documents stands, and what may come next."""

    def __init__(self, rows: int) -> None:
        self.rows_R = np.arange(rows)
        self.at_R = np.full(rows, _AT_LINE)
        self.asking_R = np.zeros(rows, dtype=np.bool_)
        self.first_R, self.name_R = np.zeros((2, rows), dtype=np.int64)
        self.value_R, self.depth_R = np.zeros((2, rows), dtype=np.int64)
        self.stack_RD = np.zeros((rows, DEEPEST), dtype=np.int64)
        self.given_RN = np.zeros((rows, _LETTERS * _LETTERS), dtype=np.int64)
        """How often each name was given a value."""
        self.values_RN = np.zeros((rows, _LETTERS * _LETTERS), dtype=np.int64)

    def weights(self) -> Ints:
        """Return the weight of each symbol to come next, (R, S)."""
        weights_RS = np.zeros((len(self.rows_R), len(SYMBOLS)), dtype=np.int64)
        for at, fill in (
            (_AT_LINE, self._line),
            (_AT_FIRST, self._first_letter),
            (_AT_SECOND, self._second_letter),
            (_AT_TENS, self._tens),
            (_AT_ONES, self._ones),
            (_IN_BRACKETS, self._brackets),
        ):
            mine_M = np.flatnonzero(self.at_R == at)
            if len(mine_M):
                weights_RS[mine_M] = fill(mine_M, weights_RS[mine_M])
        weights_RS[self.at_R == _AT_END, _END] = 1
        return weights_RS

    def take(self, symbols_R: Ints) -> None:
        """Go on by one symbol each, of those that have weight."""
        at_R = self.at_R.copy()
        line_R, opens_R = at_R == _AT_LINE, (symbols_R >= _OPEN) & (symbols_R < _CLOSE)
        self.at_R = np.choose(
            at_R,
            [
                np.where(opens_R, _IN_BRACKETS, _AT_FIRST),
                np.full_like(at_R, _AT_SECOND),
                np.full_like(at_R, _AT_TENS),
                np.full_like(at_R, _AT_ONES),
                np.full_like(at_R, _AT_END),
                np.full_like(at_R, _AT_LINE),
                at_R,
            ],
        )
        self.asking_R[line_R] = symbols_R[line_R] == _ASK
        self.first_R = np.where(at_R == _AT_FIRST, symbols_R, self.first_R)
        second_R = at_R == _AT_SECOND
        self.name_R[second_R] = _LETTERS * self.first_R[second_R] + symbols_R[second_R]
        self.value_R = np.where(at_R == _AT_TENS, symbols_R - _DIGIT, self.value_R)
        self._give(np.flatnonzero((at_R == _AT_ONES) & ~self.asking_R), symbols_R - _DIGIT)
        self._stack(np.flatnonzero(opens_R), symbols_R - _OPEN)
        closes_R = (at_R == _IN_BRACKETS) & ~opens_R
        self.depth_R -= closes_R
        self.at_R[closes_R & (self.depth_R == 0)] = _AT_END

    def _give(self, mine_M: Ints, ones_R: Ints) -> None:
        names_M = self.name_R[mine_M]
        self.given_RN[mine_M, names_M] += 1
        self.values_RN[mine_M, names_M] = _DIGITS * self.value_R[mine_M] + ones_R[mine_M]

    def _stack(self, mine_M: Ints, kinds_R: Ints) -> None:
        self.stack_RD[mine_M, self.depth_R[mine_M]] = kinds_R[mine_M]
        self.depth_R[mine_M] += 1

    def _line(self, mine_M: Ints, weights_MS: Ints) -> Ints:
        weights_MS[:, _OPEN : _OPEN + _KINDS] = _BRACKET
        weights_MS[:, _DEFINE] = _LINE[_DEFINE]
        weights_MS[:, _ASK] = np.where(self.given_RN[mine_M].any(axis=1), _LINE[_ASK], 0)
        return weights_MS

    def _first_letter(self, mine_M: Ints, weights_MS: Ints) -> Ints:
        given_MN = self.given_RN[mine_M].reshape(-1, _LETTERS, _LETTERS)
        asking_M1 = self.asking_R[mine_M, None]
        weights_MS[:, :_LETTERS] = np.where(asking_M1, given_MN.sum(axis=2), 1)
        return weights_MS

    def _second_letter(self, mine_M: Ints, weights_MS: Ints) -> Ints:
        given_MN = self.given_RN[mine_M].reshape(-1, _LETTERS, _LETTERS)
        of_first_ML = given_MN[np.arange(len(mine_M)), self.first_R[mine_M]]
        weights_MS[:, :_LETTERS] = np.where(self.asking_R[mine_M, None], of_first_ML, 1)
        return weights_MS

    def _tens(self, mine_M: Ints, weights_MS: Ints) -> Ints:
        known_M = self.values_RN[mine_M, self.name_R[mine_M]] // _DIGITS
        return self._digit(mine_M, weights_MS, known_M)

    def _ones(self, mine_M: Ints, weights_MS: Ints) -> Ints:
        known_M = self.values_RN[mine_M, self.name_R[mine_M]] % _DIGITS
        return self._digit(mine_M, weights_MS, known_M)

    def _digit(self, mine_M: Ints, weights_MS: Ints, known_M: Ints) -> Ints:
        is_known_MS = np.arange(_DIGITS) == known_M[:, None]
        weights_MS[:, _DIGIT : _DIGIT + _DIGITS] = is_known_MS | ~self.asking_R[mine_M, None]
        return weights_MS

    def _brackets(self, mine_M: Ints, weights_MS: Ints) -> Ints:
        depth_M = self.depth_R[mine_M]
        opening_M1 = np.where(depth_M < DEEPEST, _OPENING, 0)[:, None]
        weights_MS[:, _OPEN : _OPEN + _KINDS] = opening_M1
        last_M = self.stack_RD[mine_M, depth_M - 1]
        weights_MS[np.arange(len(mine_M)), _CLOSE + last_M] = _CLOSING
        return weights_MS


def documents(keys_R: U64, length: int) -> npt.NDArray[np.uint8]:
    """Return one text of `length` bytes for each key, (R, N)."""
    ledger = Ledger(len(keys_R))
    texts_RN = np.zeros((len(keys_R), length), dtype=np.uint8)
    table = np.frombuffer(SYMBOLS, dtype=np.uint8)
    for place in range(length):
        sums_RS = np.cumsum(ledger.weights(), axis=1)
        high_R = bits(keys_R, place) >> np.uint64(32)
        # Weights sum to far less than 2**32: no product overflows.
        drawn_R = ((high_R * sums_RS[:, -1].astype(np.uint64)) >> np.uint64(32)).astype(np.int64)
        symbols_R = (sums_RS <= drawn_R[:, None]).sum(axis=1)
        texts_RN[:, place] = table[symbols_R]
        ledger.take(symbols_R)
    return texts_RN
