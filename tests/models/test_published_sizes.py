"""Presets have the published numbers of parameters, to the last one; nothing is allocated."""

from __future__ import annotations

import pytest
import torch

from lra.core.catalogue import find, load
from lra.core.forms import Preset, load_preset
from lra.core.scales import names
from lra.models.build import parameter_count
from lra.models.language import build_decoder, named_layers

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
}  # fmt: skip


def built(preset: Preset, size: str) -> torch.nn.Module:
    with torch.device("meta"):
        return build_decoder(
            preset.sizes[size],
            preset.form,
            layers=named_layers(preset.decoder),
            position=load(find("position", preset.position)),
        )


@pytest.mark.parametrize(
    ("name", "size"), [(name, size) for name, sizes in PARAMETERS.items() for size in sizes]
)
def test_a_preset_has_the_published_number_of_parameters(name: str, size: str) -> None:
    model = built(load_preset(name), size)
    assert all(p.is_meta for p in model.parameters())
    assert parameter_count(model) == PARAMETERS[name][size]


def test_every_size_of_every_preset_is_held() -> None:
    assert {name: set(load_preset(name).sizes) for name in names("bodies")} == {
        name: set(sizes) for name, sizes in PARAMETERS.items()
    }
