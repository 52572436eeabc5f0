"""Presets have the numbers of parameters that follow from the published sizes, to the last one;
nothing is allocated."""

from __future__ import annotations

import pytest
import torch

from lra.core.forms import Preset, load_preset
from lra.core.scales import names
from lra.models.build import parameter_count
from lra.models.language import build_preset

PARAMETERS = {
    "gpt": {"117M": 116_534_784},
    "gpt2": {
        "12x768": 124_439_808, "24x1024": 354_823_168,
        "36x1280": 774_030_080, "48x1600": 1_557_611_200,
    },
    # Table 2.1 of the paper, but for medium, printed as 350M, and for two rows whose heads do not
    # fill their width.
    "gpt3": {
        "small": 125_226_240, "medium": 355_871_744, "large": 760_300_032, "xl": 1_315_723_264,
        "2_7B": 2_651_553_280, "6_7B": 6_658_404_352, "13B": 12_853_386_240,
        "175B": 174_604_259_328,
    },
    # At 37,000 tokens, an order of magnitude that the paper gives; it prints 65 and 213 million,
    # which no vocabulary makes of both.
    "transformer2017": {"base": 63_045_632, "big": 214_171_648},
    "bart": {"base": 139_420_416, "large": 406_291_456},
    "t5": {
        "small": 60_506_624, "base": 222_903_552, "large": 737_668_096, "3B": 2_851_598_336,
        "11B": 11_307_321_344,
    },
    "pegasus": {"base": 272_285_952, "large": 568_699_904},
}  # fmt: skip


def built(preset: Preset, size: str) -> torch.nn.Module:
    with torch.device("meta"):
        return build_preset(preset, size)


@pytest.mark.parametrize(
    ("name", "size"), [(name, size) for name, sizes in PARAMETERS.items() for size in sizes]
)
def test_a_preset_has_the_parameters_that_its_published_sizes_make(name: str, size: str) -> None:
    model = built(load_preset(name), size)
    assert all(p.is_meta for p in model.parameters())
    assert parameter_count(model) == PARAMETERS[name][size]


def test_every_size_of_every_preset_is_held() -> None:
    assert {name: set(load_preset(name).sizes) for name in names("presets")} == {
        name: set(sizes) for name, sizes in PARAMETERS.items()
    }


def test_the_body_of_2017_has_the_parameters_that_no_vocabulary_hides() -> None:
    for size, parameters in (("base", 44_101_632), ("big", 176_283_648)):
        assert parameter_count(built(load_preset("transformer2017"), size).body) == parameters
