"""What is said of values that do not fit."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
import pytest

from lra.core.misfits import misfit


class Inner(msgspec.Struct):
    form: Literal["", "keep", "ignore"] = ""
    size: Literal["auto"] | int = 3
    device: Literal["cpu", "cuda"] | None = None


class Outer(msgspec.Struct):
    inner: Inner | None = None
    modes: Literal["train", "forward"] | tuple[Literal["train", "forward"], ...] = ()
    level: Literal[1, 2] = 1
    named: dict[str, Inner] = {}


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ({"inner": {"form": "kep"}}, "inner.form = 'kep' is none of ignore, keep"),
        ({"inner": {"form": 3}}, "inner.form = 3 is none of ignore, keep"),
        ({"inner": {"device": "tpu"}}, "inner.device = 'tpu' is none of cpu, cuda"),
        ({"modes": ["train", "x"]}, "modes[1] = 'x' is none of forward, train"),
        ({"level": 7}, "level = 7 is none of 1, 2"),
        ({"inner": {"size": [3]}}, "Expected `int | str`, got `array` - at `$.inner.size`"),
        ({"named": {"a": {"form": "kep"}}}, "Invalid enum value 'kep' - at `$.named[...].form`"),
        ({"inner": 3}, "Expected `object | null`, got `int` - at `$.inner`"),
        (3, "Expected `object`, got `int`"),
    ],
)
def test_a_value_that_is_one_of_a_few_is_told_which(data: Any, told: str) -> None:
    with pytest.raises(msgspec.ValidationError) as refused:
        msgspec.convert(data, Outer)
    assert misfit(refused.value, data, Outer) == told
