"""Declared operations of a mechanism, against those that torch counts of a call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import nn

from attention_impls.contract import Context, Dims, Layer, MechanismConfig
from lra.core.catalogue import find, names
from lra.core.errors import UnsupportedError
from lra.core.loading import load
from lra.measure.operations import count_operations

LENGTHS = (1, 64, 100, 257, 600)
"""One position, whole blocks, and a rest; the last is past every reach."""
TRIALS = 100
"""The longest that trials are asked for: their blocks are of a few positions, so that this is past
their reach, and a call of torch for each pair of blocks of more would take long."""
CHANGED: dict[str, tuple[dict[str, Any], ...]] = {
    "bigbird": ({"block": 16}, {"parity": "lra2021"}),
    "block_local": ({"parity": "lra2021"},),
    "linformer": ({"rank": 16, "sharing": "key-value"}, {"rank": 600}),
    "longformer": ({"window": 64, "leading": 0}, {"window": 63, "parity": "lra2021"}),
    "nystromformer": ({"landmarks": 20, "convolution": 151},),
    "reformer": ({"chunk": 2, "rounds": 2}, {"chunk": 400}),
    "sinkhorn": ({"parity": "lra2021"}, {"block": 25}),
    "sliding_window": ({"left": 64, "right": 0},),
    "sparse_fixed": (
        {"stride": 16, "summary": 4},
        {"stride": 50, "summary": 10, "parity": "lra2021"},
    ),
    "sparse_strided": ({"stride": 16},),
}
"""Beside the defaults and the trials: other ways that a formula takes."""
WITHIN = {("longformer", 1): 0.01}
"""Shares that may be missing, by mechanism and length: at one position, the sum over all that a
global row reads has one term, which torch multiplies element by element and does not count."""


def _cases() -> Iterator[Any]:
    for name in names("mechanism"):
        try:
            mechanism: type[Layer] = load(find("mechanism", name))
            changed = [mechanism.Config(**changes) for changes in CHANGED.get(name, ())]
            configs = [mechanism.Config(), *mechanism.trials, *changed]
        except Exception:  # `test_every_file_loads` says what is wrong with it
            continue
        for number, config in enumerate(configs):
            yield pytest.param(mechanism, config, id=f"{name}-{number}")


CASES = list(_cases())


def _layer(mechanism: type[Layer], config: MechanismConfig, **sizes: Any) -> Layer:
    dims = Dims(**{"width": 64, "qkv_width": 64, "heads": 4, "max_length": 640, **sizes})
    layer = mechanism(dims, config, shared=mechanism.build_shared(dims, config))
    return layer.to(_dtype(layer)).eval()


def _dtype(layer: Layer) -> torch.dtype:
    """float32, but for what holds one of torch's recurrences: that of an LSTM goes to a library's
    kernel, of which torch sees no product. In float64 torch takes the same steps itself."""
    recurrent = any(isinstance(part, nn.RNNBase) for part in layer.modules())
    return torch.float64 if recurrent else torch.float32


def _counted(layer: Layer, n: int, causal: bool) -> int:
    x_1ND = torch.randn(1, n, layer.dims.width, dtype=_dtype(layer))
    with torch.no_grad():
        return count_operations(lambda: layer(x_1ND, Context(causal=causal)))


def _ways(layer: Layer, directions: Callable[[Layer], list[bool]]) -> list[bool]:
    """The directions that the card claims and this configuration does not refuse."""
    return [causal for causal in directions(layer) if not _is_refused(layer, causal)]


def _is_refused(layer: Layer, causal: bool) -> bool:
    try:
        _counted(layer, 1, causal)
    except UnsupportedError:
        return True
    return False


@pytest.mark.parametrize(("mechanism", "config"), CASES)
def test_what_is_declared_is_what_is_counted(
    mechanism: type[Layer], config: MechanismConfig, directions: Callable[[Layer], list[bool]]
) -> None:
    layer = _layer(mechanism, config)
    most = TRIALS if config in mechanism.trials else max(LENGTHS)
    for causal in _ways(layer, directions):
        for n in LENGTHS:
            if n <= most:
                counted = _counted(layer, n, causal)
                wanted = pytest.approx(counted, rel=WITHIN.get((layer.name, n), 0.0), abs=0)
                declared = layer.operations(n, causal=causal)
                assert declared == wanted, (
                    f"{layer.name} declares {declared} operations of {n} positions (causal: "
                    f"{causal}), torch counts {counted}: mend `operations` in its file, or, if "
                    f"torch cannot see what is missing, add ({layer.name!r}, {n}) to WITHIN of "
                    "tests/attention_impls/test_declared_operations.py, and say what it is"
                )


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize(("mechanism", "config"), CASES)
def test_it_holds_for_other_sizes_and_small_tiles(
    mechanism: type[Layer], config: MechanismConfig, directions: Callable[[Layer], list[bool]]
) -> None:
    layer = _layer(mechanism, config, width=18, qkv_width=12, heads=3, projection_biases=False)
    for causal in _ways(layer, directions):
        assert layer.operations(75, causal=causal) == _counted(layer, 75, causal), causal


def test_a_layer_that_declares_nothing_says_so() -> None:
    mechanism: type[Layer] = load(find("mechanism", "identity"))
    layer = _layer(mechanism, mechanism.Config())
    with pytest.raises(UnsupportedError, match=r"identity.*\boperations\b"):
        Layer.operations(layer, 64)
