"""Builders of the tests of mechanisms and positions, as fixtures that return functions."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
import torch
from code_paths import loaded, representatives
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from attention_impls.contract import Context, Dims, Layer, MechanismConfig, Position
from attention_impls.dense import _streamed
from attention_impls.kernel import _tiles
from lra.core.catalogue import find
from lra.core.loading import load

Build = Callable[..., Layer]
Draw = Callable[..., list[Tensor]]
Case = tuple[str, dict[str, Any]]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that takes `any_case` runs over all mechanisms as they are by default, and over the
    configurations that they try where they stand for others. One that takes `few_case` runs over
    those that stand for others, as they are by default. All the rest is slow."""
    if "any_case" in metafunc.fixturenames:
        metafunc.parametrize("any_case", list(_cases(each_by_default=True)))
    if "few_case" in metafunc.fixturenames:
        metafunc.parametrize("few_case", list(_cases(each_by_default=False)))


def _cases(*, each_by_default: bool) -> Iterator[Any]:
    for name, mechanism in loaded():
        for number, config in enumerate([None, *mechanism.trials]):
            changes = {} if config is None else msgspec.to_builtins(config)
            first, stands = number == 0, name in representatives()
            quick = first or stands if each_by_default else first and stands
            marks = () if quick else pytest.mark.slow
            yield pytest.param((name, changes), id=f"{name}-{number}", marks=marks)


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shrink module constants of these names, so that short inputs span several blocks."""
    _set_everywhere(monkeypatch, BLOCK=4, CHUNK=4)


@pytest.fixture
def small_tiles(small_blocks: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shrink also how much is worked off at once, so that they span several tiles, and never take
    a way without tiles because it is cheaper."""
    _set_everywhere(
        monkeypatch, TILE=100, LONG=100, DENSE_ADVANTAGE=0, DENSE_ADVANTAGE_ON_GPU=0, TILE_COST=0
    )
    # These count features or pairs of several heads and examples, not those of one block.
    monkeypatch.setattr(_tiles, "TILE", 1000)
    monkeypatch.setattr(_streamed, "TILE", 500)


@pytest.fixture
def folded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the way of a GPU, and of compilers."""
    _set_everywhere(monkeypatch, folds=lambda like: True)


def _set_everywhere(monkeypatch: pytest.MonkeyPatch, **constants: Any) -> None:
    list(loaded())  # what is imported later would keep for good what is set here
    for name, module in list(sys.modules.items()):
        if name.startswith("attention_impls."):
            for constant, value in constants.items():
                if hasattr(module, constant):
                    monkeypatch.setattr(module, constant, value)


@pytest.fixture
def build() -> Build:
    """Return a layer by name: small, in eval mode, with biases that are not zero."""

    def make(
        case: Case,
        *,
        dtype: torch.dtype = torch.float64,
        seed: int = 0,
        **sizes: Any,
    ) -> Layer:
        name, config = case
        mechanism: type[Layer] = load(find("mechanism", name))
        dims = Dims(**{"width": 12, "qkv_width": 16, "heads": 2, "max_length": 48, **sizes})
        options: MechanismConfig = mechanism.Config(**config)
        torch.manual_seed(seed)
        shared = mechanism.build_shared(dims, options)
        layer = mechanism(dims, options, shared=shared, seed=seed)
        for parameter_name, parameter in layer.named_parameters():
            if parameter_name.endswith("bias"):
                torch.nn.init.normal_(parameter)
        return layer.to(dtype).eval()

    return make


@pytest.fixture
def draw() -> Draw:
    """Return q, k and v by head, (B, H, N or M, K), that ask for gradients."""

    def make(
        batch: int,
        n: int,
        m: int | None = None,
        *,
        heads: int = 2,
        width: int = 8,
        dtype: torch.dtype = torch.float64,
        seed: int = 0,
    ) -> list[Tensor]:
        generator = torch.Generator().manual_seed(seed)
        m = n if m is None else m
        return [
            torch.randn(
                batch, heads, length, width, generator=generator, dtype=dtype
            ).requires_grad_()
            for length in (n, m, m)
        ]

    return make


@pytest.fixture
def directions() -> Callable[[Layer], list[bool]]:
    """Return the values of `causal` that a layer claims."""

    def claimed(layer: Layer) -> list[bool]:
        can = layer.card.capabilities
        return [False] * can.bidirectional + [True] * (can.causal != "no")

    return claimed


@pytest.fixture
def positions() -> Callable[..., list[Position | None]]:
    """Return no positions, and the schemes that act inside of attention and the layer claims."""

    def claimed(layer: Layer, *kinds: str) -> list[Position | None]:
        can = layer.card.capabilities
        schemes = {"bias": (can.bias, "alibi"), "rotary": (can.rotary, "rope")}
        wanted = [schemes[kind] for kind in kinds]
        return [None, *(load(find("position", name))(layer.dims) for able, name in wanted if able)]

    return claimed


@pytest.fixture
def some_padding() -> Callable[[int, int], Tensor]:
    """Return a mask with padding behind, in front and within; the first row has none."""

    def make(batch: int, length: int) -> Tensor:
        mask = torch.rand(batch, length, generator=torch.Generator().manual_seed(2)) > 0.3
        mask[0] = True
        mask[:, length // 2] = True
        return mask

    return make


@pytest.fixture
def check_oracle() -> Callable[..., None]:
    """Compare `attend` with the dense float64 oracle: outputs, and gradients of q, k and v."""

    def check(layer: Any, qkv: list[Tensor], context: Context, tolerance: float = 1e-9) -> None:
        out, _ = layer.attend(*qkv, context)
        expected, _ = layer.oracle(*qkv, context)
        close = {"rtol": tolerance, "atol": tolerance}
        torch.testing.assert_close(out, expected.to(out.dtype), **close)
        upstream = torch.randn(
            out.shape, dtype=out.dtype, generator=torch.Generator().manual_seed(1)
        )
        found = torch.autograd.grad(out, qkv, upstream, materialize_grads=True)
        wanted = torch.autograd.grad(
            expected, qkv, upstream.to(expected.dtype), materialize_grads=True
        )
        for name, actual, reference in zip("qkv", found, wanted, strict=True):
            torch.testing.assert_close(
                actual,
                reference,
                **close,
                msg=lambda text, name=name: f"gradient of {name}: {text}",
            )

    return check


@pytest.fixture
def check_reference() -> Callable[..., None]:
    """Compare a layer with its dense float64 reference: outputs, and gradients of the input and of
    all parameters."""

    def check(layer: Layer, x: Tensor, context: Context, rtol: float = 1e-9) -> None:
        leaves = [x, *layer.parameters()]
        found, wanted = layer(x, context).y_BND, layer.reference(x, context)
        torch.testing.assert_close(found, wanted, rtol=rtol, atol=1e-9)
        upstream = torch.randn(
            found.shape, dtype=found.dtype, generator=torch.Generator().manual_seed(1)
        )
        pairs = (
            torch.autograd.grad(y, leaves, upstream, materialize_grads=True)
            for y in (found, wanted)
        )
        torch.testing.assert_close(*pairs, rtol=1e-7, atol=1e-9)

    return check


class Watched(TorchDispatchMode):
    """Counts operators, and remembers the most elements of any tensor that one returned."""

    calls = elements = 0
    """The latter of 8 bytes."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        sizes = [x.untyped_storage().nbytes() // 8 for x in tree_leaves(out) if torch.is_tensor(x)]
        self.calls, self.elements = self.calls + 1, max([self.elements, *sizes])
        return out


@pytest.fixture
def watched() -> type[Watched]:
    """Return the mode that watches."""
    return Watched


@pytest.fixture(autouse=True)
def on_one_thread(one_thread: None) -> None:
    """Models and inputs are small throughout."""
