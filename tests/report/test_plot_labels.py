"""Where names in plots go."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lra.report.plots.labels import Box, beside_circles, spread

places = st.lists(st.floats(0, 1), min_size=1, max_size=12).map(sorted)


@given(places)
def test_spread_labels_keep_their_order_and_distance(wanted: list[float]) -> None:
    found = spread(wanted, 0.05)
    assert len(found) == len(wanted)
    assert all(b - a > 0.05 - 1e-9 for a, b in pairwise(found))


def test_spread_moves_nothing_that_has_room_and_shares_the_way() -> None:
    assert spread([0.1, 0.5, 0.9], 0.05) == [0.1, 0.5, 0.9]
    assert spread([0.5, 0.5], 0.1) == pytest.approx([0.45, 0.55])


def test_names_of_circles_side_by_side_do_not_cover_each_other() -> None:
    centres, radii = [(100.0, 100.0), (150.0, 102.0), (200.0, 100.0)], [12.0] * 3
    size = (60.0, 12.0)
    found = beside_circles(centres, radii, [size] * 3, Box(0, 0, 400, 300))
    boxes = []
    for (x, y), placed in zip(centres, found, strict=True):
        shift = {"left": 0.0, "center": size[0] / 2, "right": size[0]}[placed.align]
        left, bottom = x + placed.dx - shift, y + placed.dy - size[1] / 2
        boxes.append(Box(left, bottom, left + size[0], bottom + size[1]))
    circles = [Box(x - r, y - r, x + r, y + r) for (x, y), r in zip(centres, radii, strict=True)]
    assert all(box.overlap(circle) == 0 for box in boxes for circle in circles)
    assert all(a.overlap(b) == 0 for n, a in enumerate(boxes) for b in boxes[n + 1 :])


def test_a_name_at_the_right_edge_goes_left() -> None:
    (placed,) = beside_circles([(390.0, 100.0)], [5.0], [(80.0, 12.0)], Box(0, 0, 400, 300))
    assert placed.align == "right"


def test_a_name_stays_off_a_line() -> None:
    centre, size, frame = (200.0, 100.0), (60.0, 12.0), Box(0, 0, 400, 300)
    (free,) = beside_circles([centre], [10.0], [size], frame)
    line = Box(200, 98, 400, 102)
    (placed,) = beside_circles([centre], [10.0], [size], frame, [line])
    assert (free.align, placed.align) == ("left", "right")
