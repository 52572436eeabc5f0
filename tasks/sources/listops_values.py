"""Values of ListOps expressions: the rules of their operators, apart from any generator."""

from __future__ import annotations

from collections.abc import Callable, Sequence

OPERATORS: dict[bytes, Callable[[list[int]], int]] = {
    b"[MIN": min,
    b"[MAX": max,
    b"[MED": lambda args: _median(sorted(args)),
    b"[SM": lambda args: sum(args) % 10,
}


def evaluate(tokens: Sequence[bytes]) -> int:
    """Return the value of one expression, written without parentheses.

    Raises `ValueError` saying what keeps the tokens, all of them known, from being an expression.
    """
    if not tokens:
        raise ValueError("holds no token")
    opened, closed = sum(map(tokens.count, OPERATORS)), tokens.count(b"]")
    if opened != closed:
        raise ValueError(f"has {opened} operators and {closed} ']'")
    # The last list collects what the whole is worth.
    waiting: list[tuple[bytes, list[int]]] = [(b"", [])]
    for place, token in enumerate(tokens):
        if len(waiting) == 1 and waiting[0][1]:
            raise ValueError(f"is over after token {place} of {len(tokens)}")
        if token in OPERATORS:
            waiting.append((token, []))
        elif token != b"]":
            waiting[-1][1].append(int(token))
        elif len(waiting) == 1:
            raise ValueError("begins with ']'")
        else:
            operator, args = waiting.pop()
            if not args:
                raise ValueError("has an operator without arguments")
            waiting[-1][1].append(OPERATORS[operator](args))
    return waiting[0][1][0]


def _median(ranked: list[int]) -> int:
    """The median; of an even number the mean of the middle two, rounded down."""
    return (ranked[(len(ranked) - 1) // 2] + ranked[len(ranked) // 2]) // 2
