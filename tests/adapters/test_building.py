"""How somebody's attention is built, and what no adapter takes."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import msgspec
import pytest
import torch
import zoo
import zoo_configured
from adapted import KEEP_BN, D, H, built, exact, inputs, of_plain
from torch import Tensor, nn
from torch.nn import functional as F

from attention_impls.contract import Context, Dims
from lra.adapters.adapt import adapt
from lra.core.errors import LraError, UnsupportedError, UsageError
from lra.core.peers import Peer


def test_a_constructor_is_given_its_sizes_and_the_settings() -> None:
    defaults: Any = adapt(zoo.Configurable, "mine").Config()
    assert (defaults.power, defaults.bend) == (None, False)
    assert not hasattr(defaults, "dim") and not hasattr(defaults, "heads")
    layer: Any = built(zoo.Configurable, power=2.0)
    x_BND = inputs()
    want = 2 * exact(of_plain(layer), x_BND)
    torch.testing.assert_close(layer(x_BND, Context()).y_BND, want, rtol=1e-5, atol=1e-5)
    with pytest.raises(UsageError, match=r"'power'.*--set"):
        built(zoo.Configurable)


@pytest.mark.parametrize(
    ("parameters", "advised"),
    [
        ("channels: int, n_groups: int", ["dim", "heads"]),
        ("channels", ["dim", "heads"]),
        ("dim, n_groups: int", ["heads"]),
        ("channels: int, heads", ["dim"]),
        ("dim, heads, rank: int", []),
        ("kind: str", []),
    ],
)
def test_a_size_of_no_known_name_is_told_which_names_are_read(
    parameters: str, advised: list[str]
) -> None:
    where: dict[str, Any] = {"nn": nn}
    exec(f"class Mine(nn.Module):\n def __init__(self, {parameters}): pass\n"
         " def forward(self, x): return x", where)  # fmt: skip
    with pytest.raises(UsageError) as refused:
        built(where["Mine"])
    assert [name for name in ("dim", "heads") if f" it {name} or " in str(refused.value)] == advised


def test_a_registered_dataclass_is_filled_and_none_keeps_the_default() -> None:
    layer: Any = built(zoo.Registered)
    assert adapt(zoo.Registered, "mine").Config.__struct_fields__[-1] == "gain"
    torch.manual_seed(0)
    mechanism = adapt(zoo.Registered, "mine")
    dims = Dims(width=D, qkv_width=D, heads=H, max_length=16)
    assert mechanism(dims).inner.bidirectional.gain.tolist() == [2.0] * (D // H)
    set_to = mechanism(dims, mechanism.Config(gain=3.0))
    assert set_to.inner.bidirectional.gain.tolist() == [3.0] * (D // H)
    assert layer.inner.causal.gain is layer.inner.bidirectional.gain


def test_options_reach_a_configuration() -> None:
    layer: Any = built(zoo_configured.Local, options={"power": 3.0})
    x_BND = inputs()
    want = 3 * exact(of_plain(layer), x_BND)
    torch.testing.assert_close(layer(x_BND, Context()).y_BND, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("peer", [None, Peer(package="", reference="", settings={"pad_to": 8})])
def test_lengths_are_a_multiple_of_something(peer: Peer | None) -> None:
    kind = adapt(zoo.Keeps, "mine", peer).Config
    for wrong in (0, -3):
        with pytest.raises(msgspec.ValidationError, match=r">= 1 - at `\$.pad_to`"):
            msgspec.convert({"pad_to": wrong}, kind)


class DropsTwice(nn.Module):
    def __init__(self, dim: int, attn_pdrop: float = 0.1, resid_pdrop: float = 0.1):
        super().__init__()
        self.drops = attn_pdrop, resid_pdrop

    def forward(self, x: Tensor) -> Tensor:
        return x


def test_the_model_decides_both_dropouts() -> None:
    mechanism = adapt(DropsTwice, "mine")
    for rate in (0.0, 0.3):
        layer: Any = mechanism(Dims(width=D, qkv_width=D, heads=H, max_length=16, dropout=rate))
        assert layer.inner.bidirectional.drops == (rate, rate)


class Defaults(nn.Module):
    def __init__(
        self, needed, rate: float = 0.1, rank: int = 4, flag: bool = False, kind: str = "a",
        nothing: Any = None, window: int | list[int] = 8, scale: float | str = 1.0,
        most: int | None = 3,
    ):  # fmt: skip
        super().__init__()

    def forward(self, x: Tensor) -> Tensor:
        return x


@pytest.mark.parametrize(
    ("field", "taken", "refused"),
    [
        ("rate", [0.5, 2, None], ["abc", True, [1]]),
        ("rank", [8, 0.25, None], ["abc", True]),
        ("flag", [True, 2, 0.5, None], ["yes", []]),
        ("most", [5, None], ["abc"]),
        ("window", [4, [4, 4], "auto"], []),
        ("scale", [0.5, "auto"], []),
        ("kind", ["b", 1, None], []),
        ("needed", ["b", 1, True, [1]], []),
        ("nothing", ["b", 1, True, [1]], []),
    ],
)
def test_a_setting_is_what_its_default_is(field: str, taken: list[Any], refused: list[Any]) -> None:
    kind = adapt(Defaults, "mine").Config
    assert msgspec.convert(msgspec.to_builtins(kind()), kind) == kind()
    for value in taken:
        assert getattr(msgspec.convert({field: value}, kind), field) == value
    for value in refused:
        with pytest.raises(msgspec.ValidationError, match=rf"Expected .* - at `\$.{field}`"):
            msgspec.convert({field: value}, kind)


class SaysCross(nn.Module):
    def __init__(self, cross: bool = False):
        super().__init__()
        self.cross = cross

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return v


class SaysOtherwise(nn.Module):
    def __init__(self, mask_form: str = "causal", pad_to: int = 0) -> None:
        super().__init__()
        self.said = mask_form, pad_to

    def forward(self, x: Tensor) -> Tensor:
        return x


def test_a_default_that_means_nothing_to_the_adapter_is_the_constructors_alone() -> None:
    layer: Any = built(SaysOtherwise)
    assert (layer.config.mask_form, layer.config.pad_to) == ("", 1)
    assert layer.inner.bidirectional.said == ("causal", 0)


def test_a_name_that_a_constructor_shares_with_the_adapter_keeps_its_default() -> None:
    layer: Any = built(SaysCross)
    assert layer.inner.bidirectional.cross is layer.config.cross is False
    assert built(SaysCross, cross=True).inner.bidirectional.cross is True  # type: ignore[union-attr]


class HandsOn(zoo_configured.Local):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)


def test_a_config_that_is_handed_on_is_found_beside_what_takes_it() -> None:
    layer: Any = built(HandsOn, options={"power": 3.0})
    assert layer.inner.bidirectional.power == 3.0


class TwoOrNone(nn.Module):
    def __init__(self, config):
        super().__init__()

    def forward(self, hidden_states: Tensor) -> Tensor:
        return hidden_states


class TooMuch(nn.Module):
    def forward(self, x: Tensor, grid: Tensor) -> Tensor:
        return x


class Nothing(nn.Module):
    pass


class NoModule:
    """Could be called, but its weights would stay as they are, and uncounted."""

    def __init__(self, dim: int) -> None:
        self.weights = torch.ones(dim, requires_grad=True)

    def forward(self, x: Tensor) -> Tensor:
        return x * self.weights


class NoModuleCalled:
    def __call__(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return v


class Kernel(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor) -> Tensor:  # type: ignore[override]
        return v


class InC(nn.Module):
    forward = torch.relu  # type: ignore[assignment]


def test_an_object_that_can_be_called_is_a_function() -> None:
    layer = adapt(NoModuleCalled(), "mine")(Dims(width=D, qkv_width=D, heads=H, max_length=16))
    assert layer(inputs(), Context()).y_BND.isfinite().all()


@pytest.mark.parametrize(
    ("what", "words"),
    [
        (TooMuch, r"mine.*\bgrid\b"),
        (Nothing, r"mine.*\binput\b"),
        (InC, r"mine.*\bcalled\b"),
        (NoModule, r"mine.*torch\.nn\.Module"),
        (NoModuleCalled, r"mine.*torch\.nn\.Module"),
        (Kernel, r"mine.*torch\.nn\.Module"),
        (zoo.Keeps(D, H), r"mine.*\bclass\b"),
        (F.scaled_dot_product_attention, r"mine.*\bsignature\b"),
        (TwoOrNone, r"mine.*\bconfig\b.*\b0\b"),
    ],
)
def test_what_no_adapter_fits_is_one_line(what: Any, words: str) -> None:
    with pytest.raises(UsageError, match=words) as refused:
        adapt(what, "mine")
    assert "\n" not in str(refused.value)


def test_a_component_with_heads_of_its_own_is_refused() -> None:
    with pytest.raises(UsageError, match=r"\bheads\b"):
        built(zoo.BringsItsHeads)


def test_a_component_that_denies_its_mask_gets_none() -> None:
    layer = built(zoo.DeniesItsMask)
    assert layer(inputs(), Context()).y_BND.isfinite().all()
    with pytest.raises(UnsupportedError, match="supports_attention_mask = False"):
        layer(inputs(), Context(query_mask_BN=KEEP_BN))


class RanksHeads(zoo.Keeps):
    """Adds an argument of its own to those it hands on."""

    def __init__(self, *args: Any, rank: int = 3, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.rank = rank


def test_what_is_handed_on_is_read_with_what_it_is_handed_to() -> None:
    layer: Any = built(RanksHeads, rank=5)
    assert layer.inner.bidirectional.rank == 5
    assert "dim = width, heads = heads" in adapt(RanksHeads, "mine").card.assumed[1]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (lambda x: x[:, :-1], r"\(3, 5, 8\).*\(3, 6, 8\)"),
        (lambda x: None, "NoneType"),
        (lambda x: (x.mT, 1), r"\(3, 8, 6\)"),
        (lambda x: (), r"\btuple\b"),
        (lambda x: {"a": x}, r"\bdict\b"),
    ],
)
def test_an_answer_that_does_not_fit_is_one_line(given: Any, words: str) -> None:
    def module(x: Tensor) -> Any:
        return given(x)

    with pytest.raises(LraError, match=words):
        built(module)(inputs(), Context())


def test_a_width_that_heads_do_not_fill_is_refused() -> None:
    mechanism = adapt(zoo.Keeps, "mine")
    with pytest.raises(UsageError, match=r"\b8\b.*\b4\b"):
        mechanism(Dims(width=8, qkv_width=4, heads=2, max_length=16))


def test_a_partial_is_no_part_of_python_itself() -> None:
    """Its class is of `functools`; `math.sin` is refused on the command line."""

    def attend(q: Tensor, k: Tensor, v: Tensor, power: float) -> Tensor:
        return F.scaled_dot_product_attention(q, k, power * v)

    assert adapt(partial(attend, power=2.0), "mine").card.title == "mine"
    with pytest.raises(UsageError, match="'math'"):
        adapt(math.sin, "sin")
