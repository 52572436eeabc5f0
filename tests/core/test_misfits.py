"""Sentences about values that do not fit."""

from datetime import date
from typing import Annotated, Literal

import msgspec
import pytest

from lra.core.validation import why_invalid


class Inner(msgspec.Struct):
    bend: int | float | None = None
    rounds: Annotated[int, msgspec.Meta(ge=1)] = 1
    form: Literal["", "keep", "ignore"] = ""
    size: Literal["auto"] | int = 3
    device: Literal["cpu", "cuda"] | None = None


class Outer(msgspec.Struct, forbid_unknown_fields=True):
    inner: Inner | None = None
    modes: Literal["train", "forward"] | tuple[Literal["train", "forward"], ...] = ()
    level: Literal[1, 2] = 1
    named: dict[str, Inner] = {}
    tables: dict[str, dict[str, tuple[float, float]]] = {}
    axis: Annotated[tuple[bool, ...], msgspec.Meta(min_length=1)] = (True,)


LONG = {"long": "x" * 40}
LAST = {"a": {}, "b c": {"rounds": 1}, "d": {"rounds": 0}}


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ({"inner": {"form": "kep"}}, "inner.form = 'kep' is none of ignore, keep"),
        ({"inner": {"form": 3}}, "inner.form = 3 is none of ignore, keep"),
        ({"inner": {"device": "tpu"}}, "inner.device = 'tpu' is none of cpu, cuda"),
        ({"modes": ["train", "x"]}, "modes[1] = 'x' is none of forward, train"),
        ({"level": 7}, "level = 7 is none of 1, 2"),
        ({"inner": {"size": [3]}}, "inner.size = [3] must be a whole number or a text"),
        ({"inner": {"rounds": 0}}, "inner.rounds = 0 must be a whole number >= 1"),
        ({"inner": {"rounds": "x"}}, "inner.rounds = 'x' must be a whole number"),
        ({"named": {"a": {"form": "kep"}}}, "named.a.form = 'kep' is none of ignore, keep"),
        ({"named": LAST}, "named.d.rounds = 0 must be a whole number >= 1"),
        ({"named": {"b c": 3}}, "named.'b c' = 3 must be a table"),
        ({"tables": {"a": {"b": [1]}}}, "tables.a.b = [1] must be a list of length 2"),
        ({"tables": {"a": {"b": [1, 2], "c": ["x", 2]}}}, "tables.a.c[0] = 'x' must be a number"),
        ({"axis": []}, "axis = [] must be a list of length >= 1"),
        ({"axis": [date(2020, 1, 2)]}, "axis[0] = 2020-01-02 must be true or false"),
        ({"level": True}, "level = true is none of 1, 2"),
        ({"inner": {"bend": LONG}}, "inner.bend is a table and must be a number or nothing"),
        ({"inner": {"bend": "x"}}, "inner.bend = 'x' must be a number or nothing"),
        ({"inner": 3}, "inner = 3 must be a table or nothing"),
        ({"sizes": 3}, "Object contains unknown field `sizes`"),
        (3, "Expected `object`, got `int`"),
    ],
)
def test_a_misfit_names_its_place_and_value(data, says):
    with pytest.raises(msgspec.ValidationError) as refused:
        msgspec.convert(data, Outer)
    assert why_invalid(refused.value, data, Outer) == says
