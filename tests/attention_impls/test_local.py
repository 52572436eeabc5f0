"""Local mixing: how far its taps reach, in rows and in pictures."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from attention_impls.contract import Context, Layer

WIDTH, N = 12, 42


def felt(layer: Layer, place: int, context: Context) -> list[int]:
    """Positions whose output depends on the input at one place."""
    x_1ND = torch.randn(1, N, WIDTH, dtype=torch.float64)
    other_1ND = x_1ND.clone()
    other_1ND[0, place] += 1.0
    with torch.no_grad():
        moved_N = (layer(x_1ND, context).y_BND != layer(other_1ND, context).y_BND).any(-1)[0]
    found: list[int] = moved_N.nonzero().flatten().tolist()
    return found


def test_a_position_reaches_four_to_either_side_and_causally_eight_ahead(build) -> None:
    layer = build(("local", {}))
    assert felt(layer, 20, Context()) == [*range(16, 25)]
    assert felt(layer, 20, Context(causal=True)) == [*range(20, 29)]
    assert felt(layer, 0, Context()) == [*range(5)]


def test_a_pixel_reaches_those_around_it(build) -> None:
    layer = build(("local", {}), picture_width=7)
    assert felt(layer, 17, Context()) == [9, 10, 11, 16, 17, 18, 23, 24, 25]
    assert felt(layer, 17, Context(causal=True)) == [17, 18, 19, 24, 25, 26, 31, 32, 33]


@pytest.mark.parametrize("width", [None, 7])
def test_it_is_the_convolution_of_the_textbook(build, width: int | None) -> None:
    """torch's convolution; in a picture but for its edges, where a row goes on in the next."""
    layer = build(("local", {}), picture_width=width)
    layer.output = torch.nn.Identity()
    x_BND = torch.randn(2, N, WIDTH, dtype=torch.float64)
    weight_DDT = layer.weigh.weight.unflatten(1, (9, WIDTH)).mT.contiguous()
    with torch.no_grad():
        own_BDN = layer(x_BND, Context()).y_BND.mT
        if width is None:
            theirs: Tensor = F.conv1d(x_BND.mT, weight_DDT, layer.weigh.bias, padding=4)
        else:
            pictures = x_BND.mT.unflatten(2, (-1, width))
            kernel = weight_DDT.unflatten(2, (3, 3))
            theirs = F.conv2d(pictures, kernel, layer.weigh.bias, padding=1)[..., 1:-1]
            own_BDN = own_BDN.unflatten(2, (-1, width))[..., 1:-1]
    torch.testing.assert_close(own_BDN, F.gelu(theirs))


def test_a_picture_takes_as_many_parameters_as_a_row(build) -> None:
    row, picture = build(("local", {})), build(("local", {}), picture_width=7)
    assert {k: v.shape for k, v in row.state_dict().items()} == {
        k: v.shape for k, v in picture.state_dict().items()
    }


@pytest.mark.parametrize("width", [1, 3, 7])
def test_pictures_are_decoded_to_what_they_are_at_once(build, width: int) -> None:
    layer = build(("local", {}), picture_width=width)
    x_BND, causal = torch.randn(2, N, WIDTH, dtype=torch.float64), Context(causal=True)
    with torch.no_grad():
        whole = layer(x_BND, causal).y_BND
        torch.testing.assert_close(whole, layer.reference(x_BND, causal))
        state = layer.init_state(2, length=N, device=x_BND.device, dtype=x_BND.dtype)
        parts = []
        for part_BND in x_BND.split([20, 1, 1, 20], dim=1):
            out = layer(part_BND, causal, state=state)
            parts.append(out.y_BND)
            state = out.state
    torch.testing.assert_close(torch.cat(parts, dim=1), whole)
