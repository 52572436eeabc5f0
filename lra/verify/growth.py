"""Formulas of growth as cards write them, such as `O(n m d)` and `O(n log n + w^2)`.

n and m are lengths and grow together; every other letter is a constant. The first formula of a card
is what it claims of plain inputs; others may follow, with the words for when they hold.
"""

from __future__ import annotations

import math
import re

from lra.core.errors import UsageError

_TERM = re.compile(r"O\((?P<formula>(?:[^()]|\([^()]*\))*)\)")
_TOKEN = re.compile(r"\s*(sqrt|log|[A-Za-z]|\d+(?:\.\d+)?|[-+/^()])")
_LENGTHS = ("n", "m")
_SHORT, _LONG = 2.0**40, 2.0**44


def exponent(text: str) -> float:
    """Return e for the first formula of a text, which grows as n^e; logarithms count for nothing.

    Raises `UsageError` for what is no formula.
    """
    return _exponents(text)[0]


def greatest_exponent(text: str) -> float:
    """Return the greatest e of all formulas in a text, whenever they hold; raises likewise."""
    return max(_exponents(text))


def _exponents(text: str) -> list[float]:
    formulas = [match["formula"] for match in _TERM.finditer(text)]
    if not formulas:
        raise UsageError(f"growth '{text}' has no formula; write e.g. O(n m d)")
    return [_exponent(formula) for formula in formulas]


def _exponent(formula: str) -> float:
    try:
        code = compile(_python(formula), "<card>", "eval")
        short, long = (float(eval(code, _names(length))) for length in (_SHORT, _LONG))
    except (SyntaxError, NameError, TypeError) as error:
        raise UsageError(f"growth 'O({formula})' cannot be read; write e.g. O(n m d)") from error
    return math.log(long / short) / math.log(_LONG / _SHORT)


def _python(formula: str) -> str:
    """Put a product sign between factors that stand side by side."""
    words: list[str] = []
    place = 0
    while place < len(formula.rstrip()):
        match = _TOKEN.match(formula, place)
        if match is None:
            raise UsageError(
                f"growth 'O({formula})' cannot be read at '{formula[place:]}'; write e.g. O(n m d)"
            )
        word, place = match[1], match.end()
        if words and _ends_factor(words[-1]) and _starts_factor(word):
            words.append("*")
        words.append("**" if word == "^" else word)
        # `log n` without parentheses takes one factor.
    return re.sub(r"(log|sqrt)\*?([A-Za-z])\b", r"\1(\2)", "".join(words))


def _ends_factor(word: str) -> bool:
    return word == ")" or (word[-1].isalnum() and word not in ("sqrt", "log"))


def _starts_factor(word: str) -> bool:
    return word == "(" or word[0].isalnum()


def _names(length: float) -> dict[str, object]:
    letters = {chr(code): 1.0 for code in [*range(65, 91), *range(97, 123)]}
    # A logarithm of the lengths is between every power: it counts as a constant.
    return {
        "__builtins__": {},
        **letters,
        **dict.fromkeys(_LENGTHS, length),
        "sqrt": math.sqrt,
        "log": lambda value: 1.0,
    }
