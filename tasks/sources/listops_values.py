"""Values of ListOps expressions: the rules of their operators, apart from any generator."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

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
            if len(args) < 2:
                # The grammar gives every operator two arguments or more.
                told = "with one argument" if args else "without arguments"
                raise ValueError(f"has an operator {told}")
            waiting[-1][1].append(OPERATORS[operator](args))
    return waiting[0][1][0]


def refuse_misplaced(text: bytes) -> None:
    """Raise `ValueError` where parentheses of an expression, whose `]` are in order, are not.

    Each `)` follows its `(`, and one that is opened between an operator and its `]` closes there.
    """
    opened, closed = text.count(b"("), text.count(b")")
    if opened != closed:
        raise ValueError(f"has {opened} '(' and {closed} ')'")
    found = np.frombuffer(text, dtype=np.uint8)
    depth = np.cumsum((found == ord("(")).astype(int) - (found == ord(")")))
    if (depth < 0).any():
        raise ValueError("has a ')' before its '('")
    outside: list[int] = []
    for place in np.flatnonzero((found == ord("[")) | (found == ord("]"))):
        if found[place] == ord("["):
            outside.append(depth[place])
        elif depth[place] > outside.pop():
            raise ValueError("has a '(' within an operator and its ')' behind that operator's ']'")


def _median(ranked: list[int]) -> int:
    """The median; of an even number the mean of the middle two, rounded down."""
    return (ranked[(len(ranked) - 1) // 2] + ranked[len(ranked) // 2]) // 2
