"""Rollouts in a record: they come back as they went in, and content of another size is refused."""

import msgspec
import numpy as np
import pytest

from lra.core.trained_attention import Rollout, TrainedAttention, pack_rollout

PIXELS = np.arange(9, dtype=np.uint8).reshape(3, 3)
SHARES = PIXELS / 40.0


def test_a_rollout_comes_back_as_precise_as_a_byte():
    packed = pack_rollout(PIXELS, SHARES, label=1, answer=0)
    again = msgspec.json.decode(msgspec.json.encode(packed), type=Rollout)
    assert np.array_equal(again.pixels_YX(), PIXELS)
    assert np.abs(again.shares_YX() - SHARES).max() <= 1.001 * SHARES.max() / 510
    assert (again.label, again.answer, again.top) == (1, 0, 0.2)
    # A picture without any share has none.
    assert pack_rollout(PIXELS, 0 * SHARES, label=0, answer=0).shares_YX().max() == 0.0


@pytest.mark.parametrize("field", ["pixels", "shares"])
@pytest.mark.parametrize("content", [b"", b"no deflate", None])
def test_a_content_that_is_no_picture_of_its_size_is_refused(field, content):
    whole, small = (
        pack_rollout(pixels, shares, label=1, answer=1)
        for pixels, shares in ((PIXELS, SHARES), (np.ones((2, 2)), np.ones((2, 2))))
    )
    packed = msgspec.to_builtins(whole, builtin_types=[bytes])
    packed[field] = getattr(small, field) if content is None else content
    with pytest.raises(msgspec.ValidationError, match="rollout"):
        msgspec.convert(packed, Rollout)


def test_the_distance_is_the_mean_over_layers_and_heads():
    assert TrainedAttention(examples=1, distances=((1.0, 2.0), (3.0, 6.0))).distance == 3.0
