"""Position schemes: their formulas by hand, what they do to a shift, their tables and refusals."""

from __future__ import annotations

import math

import msgspec
import pytest
import torch

from attention_impls.contract import Dims, Position
from lra.core.cards import PositionCard
from lra.core.catalogue import find, names
from lra.core.errors import UnsupportedError
from lra.core.loading import load

DIMS = Dims(width=12, qkv_width=16, heads=2, max_length=20)


def scheme(name: str, dims: Dims = DIMS) -> Position:
    torch.manual_seed(0)
    position: Position = load(find("position", name))(dims)
    return position


def test_the_expected_schemes_are_there() -> None:
    expected = {"alibi", "learned", "learned_from_sinusoid", "none", "rope", "sinusoidal"}
    assert expected <= set(names("position"))


@pytest.mark.parametrize("name", names("position"))
def test_every_scheme_says_what_it_is_in_the_words_of_a_card(name: str) -> None:
    card = load(find("position", name)).card
    assert msgspec.convert(msgspec.to_builtins(card), PositionCard) == card


@pytest.mark.parametrize("name", names("position"))
def test_a_scheme_acts_where_its_card_says_and_nowhere_else(name: str) -> None:
    position = scheme(name)
    places = torch.arange(7)
    x = torch.randn(2, 2, 7, 8)
    acts = {
        "input": position.embed(places) is not None,
        "queries-keys": not torch.equal(position.rotate(x, places), x),
        "logits": position.logits(places, places) is not None,
    }
    assert [where for where, active in acts.items() if active] == (
        [] if position.card.acts_on == "nothing" else [position.card.acts_on]
    )
    if acts["input"]:
        assert position.embed(places).shape == (7, 12)
    if acts["logits"]:
        bias = position.logits(places[:3], places)
        assert bias.shape == (2, 3, 7) and bias.dtype == torch.float32


@pytest.mark.parametrize("name", names("position"))
def test_a_longer_input_is_refused_in_one_line_or_served(name: str) -> None:
    position = scheme(name)
    places = torch.arange(DIMS.max_length + 1)
    position.embed(places[:-1])
    if position.card.fixed_length:
        with pytest.raises(UnsupportedError, match=r"\b20\b.*\b21\b") as refusal:
            position.embed(places)
        assert "\n" not in str(refusal.value)
    else:
        position.embed(places)
        position.logits(places, places)


@pytest.mark.parametrize("name", names("position"))
def test_places_of_each_example_are_served_as_each_alone(name: str) -> None:
    position = scheme(name, Dims(width=5, qkv_width=16, heads=2, max_length=20))
    rows, columns = torch.tensor([[3, 0, 7], [1, 1, 12]]), torch.tensor([[5, 2], [19, 0]])
    x, embedded = torch.randn(2, 2, 3, 8), position.embed(rows)
    turned, added = position.rotate(x, rows), position.logits(rows, columns)
    assert turned.shape == x.shape
    for one in range(2):
        assert torch.equal(turned[one], position.rotate(x[one : one + 1], rows[one])[0])
        if embedded is not None:
            assert torch.equal(embedded[one], position.embed(rows[one]))
        if added is not None:
            assert torch.equal(added[one], position.logits(rows[one], columns[one]))
            for mixed in (position.logits(rows, columns[one]), position.logits(rows[one], columns)):
                assert torch.equal(mixed[one], added[one])


@pytest.mark.parametrize("width", [1, 5, 12])
def test_sinusoid_interleaves_sines_and_cosines(width: int) -> None:
    table = scheme("sinusoidal", Dims(width, 16, 2, 20)).embed(torch.tensor([0, 1, 7, 300]))
    assert table.dtype == torch.float32
    for row, p in enumerate((0, 1, 7, 300)):
        for column in range(width):
            angle = p / 10_000 ** ((column - column % 2) / width)
            expected = math.cos(angle) if column % 2 else math.sin(angle)
            assert table[row, column].item() == pytest.approx(expected, abs=3e-5)


def test_sinusoid_tells_distant_neighbours_apart_under_autocast() -> None:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        table = scheme("sinusoidal").embed(torch.arange(4000, 4100))
    assert table.dtype == torch.float32
    assert (table[1:] - table[:-1]).norm(dim=-1).min() > 0.1


def test_sinusoid_has_no_parameters_and_no_state() -> None:
    assert not list(scheme("sinusoidal").parameters()) and not scheme("sinusoidal").state_dict()


def test_learned_rows_start_small_and_are_looked_up() -> None:
    position = scheme("learned", Dims(width=64, qkv_width=64, heads=2, max_length=500))
    assert position.table.shape == (500, 64)
    assert position.table.std().item() == pytest.approx(0.02, rel=0.02)
    places = torch.tensor([3, 0, 499])
    assert torch.equal(position.embed(places), position.table[places])
    position.embed(places).sum().backward()
    assert position.table.grad.sum(dim=1).nonzero().flatten().tolist() == [0, 3, 499]


def test_learned_from_sinusoid_starts_there_and_is_trained() -> None:
    position, fixed = scheme("learned_from_sinusoid"), scheme("sinusoidal")
    places = torch.arange(DIMS.max_length)
    assert torch.equal(position.embed(places), fixed.embed(places))
    assert [p.shape for p in position.parameters()] == [(20, 12)]
    assert position.embed(places).requires_grad


def test_rope_turns_halves_by_the_position() -> None:
    """Heads of 4: features 0 and 2 turn by p, features 1 and 3 by p / 100."""
    position = scheme("rope", Dims(width=8, qkv_width=8, heads=2, max_length=20))
    x = torch.tensor([1.0, 2.0, 3.0, 4.0]).expand(1, 2, 1, 4)
    p = 7
    turned = position.rotate(x, torch.tensor([p]))[0, 0, 0].tolist()
    fast, slow = (math.cos(p), math.sin(p)), (math.cos(p / 100), math.sin(p / 100))
    expected = [
        1 * fast[0] - 3 * fast[1],
        2 * slow[0] - 4 * slow[1],
        3 * fast[0] + 1 * fast[1],
        4 * slow[0] + 2 * slow[1],
    ]
    assert turned == pytest.approx(expected, abs=1e-5)


def test_rope_angles_stay_precise_in_bfloat16() -> None:
    position, places = scheme("rope"), torch.arange(5000, 5009)
    x = torch.randn(1, 2, 9, 8).bfloat16()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        turned = position.rotate(x, places)
    assert turned.dtype == torch.bfloat16
    torch.testing.assert_close(
        turned.double(), position.rotate(x.double(), places), rtol=0.01, atol=0.01
    )


def test_rope_refuses_heads_of_odd_width() -> None:
    with pytest.raises(UnsupportedError, match=r"\bwidth 3\b"):
        scheme("rope", Dims(width=8, qkv_width=6, heads=2, max_length=20))


@pytest.mark.parametrize(
    ("heads", "exponents"),
    [
        (1, [8]),
        (2, [4, 8]),
        (8, [1, 2, 3, 4, 5, 6, 7, 8]),
        (12, [1, 2, 3, 4, 5, 6, 7, 8, 0.5, 1.5, 2.5, 3.5]),
    ],
)
def test_alibi_slopes(heads: int, exponents: list[float]) -> None:
    """Powers of 1/2 as printed by the authors' code for these numbers of heads."""
    position = scheme("alibi", Dims(heads * 2, heads * 2, heads, max_length=20))
    slopes = -position.logits(torch.tensor([0]), torch.tensor([1])).flatten()
    assert slopes.tolist() == pytest.approx([2.0**-e for e in exponents], rel=1e-6)


def test_alibi_is_a_symmetric_distance_whatever_the_block() -> None:
    position = scheme("alibi")
    places = torch.arange(9)
    whole = position.logits(places, places)
    assert whole[0, 2].tolist() == [-(2.0**-4) * abs(2 - j) for j in range(9)]
    assert torch.equal(whole, whole.mT)
    assert torch.equal(whole, position.logits(places + 300, places + 300))
    assert torch.equal(whole[:, 2:5, 4:], position.logits(places[2:5], places[4:]))
    assert not position.state_dict()


@pytest.mark.parametrize("name", ["learned", "learned_from_sinusoid"])
@pytest.mark.parametrize("place", [20, -1])
def test_a_position_outside_of_the_table_is_refused_in_one_line(name: str, place: int) -> None:
    with pytest.raises(UnsupportedError, match=rf"^learned\b.*\b19\b.*\s{place}\b"):
        scheme(name).embed(torch.tensor([3, place]))
    assert scheme(name).embed(torch.arange(0)).shape == (0, 12)


def test_learned_positions_never_wait_for_the_device() -> None:
    """On a meta tensor there is no value to look at."""
    position = scheme("learned").to("meta")
    assert position.embed(torch.arange(7, device="meta")).shape == (7, position.dims.width)


def test_buckets_are_exact_near_and_logarithmic_far() -> None:
    """Eight single distances on each side, then eight that grow by 2^(1/2); causally 16 and 16."""
    both, causal = scheme("relative_buckets"), scheme("relative_buckets_causal")
    places = torch.arange(400)

    def bucket(position: Position, row: int, column: int) -> int:
        with torch.no_grad():
            position.table.copy_(torch.arange(32.0)[:, None].expand(-1, 2))
        return int(position.logits(places[row : row + 1], places[column : column + 1])[0, 0, 0])

    back = [bucket(both, 300, 300 - distance) for distance in range(300)]
    ahead = [bucket(both, 0, distance) for distance in range(300)]
    assert back[:8] == list(range(8)) and set(back[8:12]) == {8} and back[12] == 9
    assert back[15:17] == [9, 10] and back[90:92] == [14, 15] and set(back[91:]) == {15}
    assert ahead[0] == 0 and ahead[1:] == [16 + one for one in back[1:]]
    past = [bucket(causal, 300, 300 - distance) for distance in range(300)]
    assert past[:16] == list(range(16)) and past[30:32] == [20, 21] and set(past[113:]) == {31}
    assert past[112] == 30
    assert [bucket(causal, 3, 3 + distance) for distance in range(5)] == [0] * 5


@pytest.mark.parametrize("name", ["relative_buckets", "relative_buckets_causal"])
def test_buckets_are_one_trained_table_of_heads(name: str) -> None:
    position = scheme(name)
    assert [tuple(p.shape) for p in position.parameters()] == [(32, 2)]
    position.logits(torch.arange(5), torch.arange(5))[1].sum().backward()
    assert not position.table.grad[:, 0].any() and position.table.grad[:, 1].sum() == 25
