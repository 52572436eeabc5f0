"""Errors of somebody's code say what it was called without, and what would help.

B batch   N queries   D model width   H heads
"""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
import zoo
import zoo_shapes
from adapted import D, H, built, inputs
from torch import Tensor, nn
from torch.nn import functional as F

from attention_impls.contract import Context, Dims
from lra.adapters.adapt import adapt
from lra.core.errors import LraError, UnsupportedError
from lra.core.findings import Finding
from lra.verify import kit
from lra.verify.subject import Subject


class NeedsTime(zoo.Keeps):
    """Unpacks an argument that may be left out, in words, in a method of its own."""

    def forward(self, x: Tensor, mask: Any = None, time: Any = None) -> Tensor:  # type: ignore[override]
        return super().forward(self.shifted(x, time), mask)

    def shifted(self, x: Tensor, time: Any) -> Tensor:
        scale, shift = time
        return x * scale + shift


class NeedsItsMask(zoo.Keeps):
    def forward(self, x: Tensor, mask: Any = None) -> Tensor:
        return super().forward(x, mask.bool())


class AssertsTime(zoo.Keeps):
    def forward(self, x: Tensor, mask: Any = None, time: Any = None) -> Tensor:  # type: ignore[override]
        assert time is not None
        return super().forward(x, mask)


@pytest.mark.parametrize(
    ("what", "words"),
    [
        (NeedsTime, r"TypeError: .* \(test_calling.py, line \d+\); .*without 'time'"),
        (AssertsTime, r"AssertionError.*without 'time'"),
        (NeedsItsMask, r"without 'mask': --set always_mask=true"),
    ],
)
def test_an_error_names_the_argument_that_was_left_out(what: Any, words: str) -> None:
    with pytest.raises(LraError, match=words):
        built(what)(inputs(), Context())


def test_advice_on_a_mask_helps() -> None:
    assert built(NeedsItsMask, always_mask=True)(inputs(), Context()).y_BND.shape == (3, 6, D)


class FailsOtherwise(zoo.Keeps):
    """An error of its own, while an argument was left out."""

    def forward(self, x: Tensor, mask: Any = None, time: Any = None) -> Tensor:  # type: ignore[override]
        raise TypeError(f"no time for {len(x)}")


class NoneOfItsOwn(zoo.Keeps):
    """A None that nobody could have given, beside an argument that was left out and has a value."""

    def forward(self, x: Tensor, mask: Any = None, power: float = 2.0) -> Tensor:  # type: ignore[override]
        found = {"scale": None}
        return super().forward(x * found["scale"] ** power, mask)  # type: ignore[operator]


@pytest.mark.parametrize(
    ("what", "words"), [(FailsOtherwise, r"^no time for 3$"), (NoneOfItsOwn, r"NoneType.*float'$")]
)
def test_an_error_of_its_own_stays_as_it_is(what: Any, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        built(what)(inputs(), Context())


class Blocks(zoo.Keeps):
    size = 4

    def forward(self, x: Tensor, mask: Any = None) -> Tensor:
        assert x.shape[1] % self.size == 0
        return super().forward(x, mask)


class BlocksInWords(zoo.Keeps):
    def forward(self, x: Tensor, mask: Any = None) -> Tensor:
        if (n := x.shape[1]) & 3:
            raise RuntimeError(f"length {n} must be divisible by the block size of 4")
        return super().forward(x, mask)


class BlocksRaised(zoo.Keeps):
    def forward(self, x: Tensor, mask: Any = None) -> Tensor:
        n = x.shape[1]
        if n % 4 != 0:
            raise ValueError("bad length")
        return super().forward(x, mask)


@pytest.mark.parametrize("what", [Blocks, BlocksInWords, BlocksRaised])
def test_a_length_that_is_no_multiple_is_told_the_setting_that_helps(what: Any) -> None:
    with pytest.raises(LraError) as refused:
        built(what)(inputs(), Context())
    (multiple,) = re.findall(r"--set pad_to=(\d+)", str(refused.value))
    assert built(what, pad_to=int(multiple))(inputs(), Context()).y_BND.shape == (3, 6, D)


class WidthsOfFive(zoo.Keeps):
    def forward(self, x: Tensor, mask: Any = None) -> Tensor:
        raise ValueError("the head width must be divisible by 5")


def test_a_width_that_is_no_multiple_is_not_padded() -> None:
    with pytest.raises(ValueError, match="divisible by 5") as refused:
        built(WidthsOfFive)(inputs(), Context())
    assert "pad_to" not in str(refused.value)


def block_core(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    assert q.shape[-2] % 4 == 0, "pad your input"
    return v


def test_a_core_is_to_be_wrapped_for_that() -> None:
    with pytest.raises(LraError, match=r"module that wraps it --set pad_to=4"):
        built(block_core)(inputs(), Context())


class WidthAsserted(zoo.Keeps):
    def forward(self, x: Tensor, mask: Any = None) -> Tensor:
        assert x.shape[-1] % 3 == 0, "odd width"
        return super().forward(x, mask)


def test_an_assertion_on_another_size_is_none_on_the_length() -> None:
    with pytest.raises(AssertionError, match="odd width"):
        built(WidthAsserted)(inputs(), Context())


def test_an_assertion_without_words_is_shown() -> None:
    words = r"^AssertionError: assert x\.shape\[-1\] % 3 == 0 \(zoo_shapes\.py, line \d+\)$"
    with pytest.raises(LraError, match=words):
        built(zoo_shapes.AssertsInSilence)(inputs(), Context())


class MadeLate(zoo.Plain):
    """Its last projection is made when its width is known."""

    def forward(self, x: Tensor) -> Tensor:
        if not hasattr(self, "late"):
            self.late = nn.Linear(x.shape[-1], x.shape[-1], dtype=x.dtype)
        y: Tensor = self.late(self.attend(x))
        return y


class Lazy(zoo.Plain):
    def __init__(self, dim: int, heads: int) -> None:
        super().__init__(dim, heads)
        self.late = nn.LazyLinear(dim)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.late(self.attend(x))
        return y


def test_a_parameter_made_in_the_first_forward_is_refused() -> None:
    layer = built(MadeLate)
    with pytest.raises(LraError, match=r"MadeLate makes its parameter 'late\.weight'.*optimiser"):
        layer(inputs(), Context())


def test_a_parameter_without_a_size_is_refused_when_it_is_built() -> None:
    mechanism = adapt(Lazy, "mine")
    with pytest.raises(LraError, match=r"Lazy: its parameter 'late\.weight' has no size"):
        mechanism(Dims(width=D, qkv_width=D, heads=H, max_length=16))


@pytest.mark.parametrize("what", [MadeLate, Lazy])
def test_verify_says_so_too(what: Any) -> None:
    mechanism = adapt(what, "mine")
    subject = Subject(mechanism, mechanism.Config())
    (found,) = kit.verify(subject, kit.select(["output"]))
    assert isinstance(found, Finding)
    assert (found.verdict, found.ending) == ("failed", "error")
    assert "optimiser" in found.detail and "'late.weight'" in found.detail


def test_a_component_that_denies_its_mask_is_told_the_line_that_helps() -> None:
    with pytest.raises(UnsupportedError) as refused:
        built(zoo.DeniesItsMask)(inputs(), Context(query_mask_BN=torch.ones(3, 6).bool()))
    (line,) = re.findall(r"`(self\.\w+ = True)`", str(refused.value))

    class Mended(zoo.DeniesItsMask):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            exec(line)

    x_BND = inputs()
    y_BND = built(Mended)(x_BND, Context(query_mask_BN=torch.ones(3, 6).bool())).y_BND
    assert y_BND.shape == x_BND.shape


def test_calls_can_be_compiled() -> None:
    layer = built(zoo.Keeps)
    compiled = torch.compile(layer, backend="eager", fullgraph=True)
    x_BND = inputs()
    found = compiled(x_BND, Context()).y_BND
    torch.testing.assert_close(found, layer(x_BND, Context()).y_BND)
    assert F.mse_loss(found, x_BND) > 0
