"""The exponent of length in a declared cost, such as `O((n + m) r d)`.

n and m are lengths and grow together, unless one is named; every other letter is a constant, and so
is a logarithm. A sum is as great as its greatest term. Several formulas are separated by
semicolons: the first is the claim for plain inputs, the others say when they hold.
"""

from __future__ import annotations

import re

import msgspec

_TOKEN = re.compile(r"\s*(sqrt|log|[A-Za-z]|\d+(?:\.\d+)?|[-+/^()])")


class DeclaredCost(msgspec.Struct, frozen=True):
    """A formula, and the exponent of length in it."""

    formula: str
    exponent: float


def parse_cost(text: str, *, gpu: bool = False, growing: str = "nm") -> DeclaredCost | None:
    """Return a declared cost's formula for plain inputs where these lengths grow; None for a text
    that is no formula.

    On a GPU it is the greatest among the first formula and those that hold on one.
    """
    first, *others = text.split(";")
    return _greatest([first, *(one for one in others if gpu and "on a GPU" in one)], growing)


def parse_greatest_cost(text: str, *, growing: str = "nm") -> DeclaredCost | None:
    """Return the greatest of all formulas of a declared cost, whenever they hold, where these
    lengths grow."""
    return _greatest(text.split(";"), growing)


def _greatest(clauses: list[str], growing: str) -> DeclaredCost | None:
    formulas = (_Formula(clause, growing).read() for clause in clauses)
    try:
        return max(formulas, key=lambda one: one.exponent)
    except ValueError:
        return None


class _Formula:
    """One `O(...)`, read from left to right; after its last bracket come words."""

    def __init__(self, clause: str, growing: str) -> None:
        start = clause.strip()
        if not start.startswith("O("):
            raise ValueError(f"no formula in '{clause}'")
        self._text, self._place, self._growing = start, 1, growing

    def read(self) -> DeclaredCost:
        exponent = self._factor()
        return DeclaredCost(self._text[: self._place], exponent)

    def _peek(self) -> str:
        match = _TOKEN.match(self._text, self._place)
        return match[1] if match else ""

    def _take(self, wanted: str = "") -> str:
        match = _TOKEN.match(self._text, self._place)
        if match is None or (wanted and match[1] != wanted):
            raise ValueError(f"cannot read '{self._text[self._place :]}'")
        self._place = match.end()
        return match[1]

    def _sum(self) -> float:
        greatest = self._product()
        while self._peek() in ("+", "-"):
            self._take()
            greatest = max(greatest, self._product())
        return greatest

    def _product(self) -> float:
        total = self._factor()
        while self._peek() not in ("", "+", "-", ")"):
            if self._peek() == "/":
                self._take()
                total -= self._factor()
            else:
                total += self._factor()
        return total

    def _factor(self) -> float:
        word = self._take()
        if word == "(":
            own = self._sum()
            self._take(")")
        elif word in ("log", "sqrt"):
            # Without brackets a logarithm takes one factor: log n d is (log n) d.
            own = self._factor() * (0.5 if word == "sqrt" else 0.0)
        elif word[0].isalnum():
            own = float(word in self._growing)
        else:
            raise ValueError(f"cannot read '{self._text}' at '{word}'")
        if self._peek() == "^":
            self._take()
            own *= self._power()
        return own

    def _power(self) -> float:
        """Read a power: a number, or one over another in brackets."""
        word = self._take()
        if word != "(":
            return float(word)
        above = float(self._take())
        self._take("/")
        below = float(self._take())
        self._take(")")
        if not below:
            raise ValueError(f"a power of '{self._text}' divides by zero")
        return above / below
