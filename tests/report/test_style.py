"""Looks of mechanisms, and drawings inside a page."""

from __future__ import annotations

from lra.core.catalogue import EXACT, NO_MIXING
from lra.report.plots.style import Look, Looks, inline

NAMES = [f"mechanism_{n}" for n in range(70)]


def whole(look: Look) -> tuple[str, str, str]:
    return look.colour, str(look.dash), look.marker


def test_no_two_of_a_report_look_alike() -> None:
    variants = [(name, "") for name in (*NAMES, EXACT, NO_MIXING)]
    variants += [("mechanism_0", f"mechanism_0:{n}") for n in range(12)]
    looks = Looks(variants)
    assert len({whole(looks.of(*own)) for own in variants}) == len(variants)
    other = Looks(reversed(variants))
    assert all(other.of(*own) == looks.of(*own) for own in variants)


def test_colours_are_shared_as_evenly_as_they_can() -> None:
    looks = Looks([(name, "") for name in NAMES[:20]])
    colours = [looks.of(name).colour for name in NAMES[:20]]
    assert max(map(colours.count, colours)) == 2


def test_a_look_depends_on_the_name_alone_where_nobody_else_has_it() -> None:
    assert (
        Looks([("mine", "")]).of("mine") == Looks([("mine", "")]).of("mine") == Looks().of("mine")
    )
    variant = Looks([("mine", ""), ("mine", "mine:1")])
    assert variant.of("mine", "mine:1").colour == variant.of("mine").colour
    assert variant.of("mine", "unknown") == variant.of("mine")


def test_variants_of_a_mechanism_share_its_marker() -> None:
    variants = [
        ("mine", "mine:1"),
        ("mine", "mine:2"),
        (NO_MIXING, "floor:1"),
        ("other", "other:1"),
    ]
    looks = Looks(variants)
    assert looks.of("mine", "mine:1") == looks.of("mine")
    assert looks.of("mine", "mine:2").marker == looks.of("mine").marker
    assert whole(looks.of("mine", "mine:2")) != whole(looks.of("mine"))
    assert looks.of(NO_MIXING, "floor:1") == looks.of(NO_MIXING)


def test_exact_attention_and_the_floor_look_the_same_everywhere() -> None:
    assert Looks([(EXACT, "")]).of(EXACT) == Looks([(n, "") for n in (*NAMES, EXACT)]).of(EXACT)


def test_inline_drawings_have_ids_of_their_own() -> None:
    svg = '<?xml?><svg width="1pt" height="2pt" viewBox="0 0 1 2"><style>*{stroke: x}</style>'
    svg += '<g id="a"/><use xlink:href="#a"/><g clip-path="url(#b)"/></svg>'
    text = inline(svg, "p", 'says "so"')
    assert text.startswith(
        '<svg viewBox="0 0 1 2" id="p" role="img" aria-label="says &#34;so&#34;">'
    )
    assert 'id="p-a"' in text and 'href="#p-a"' in text and "url(#p-b)" in text
    assert "#p *{stroke" in text


def test_a_cycle_looks_like_none_of_its_members() -> None:
    names = [EXACT, "sliding_window", f"{EXACT}+sliding_window", f"sliding_window+{EXACT}"]
    variants = [(name, "") for name in names]
    variants += [(names[2], f"{names[2]}:{n}") for n in range(2)]
    looks = Looks(variants)
    assert len({whole(looks.of(name)) for name in names}) == len(names)
    own = [looks.of(names[2], f"{names[2]}:{n}") for n in range(2)]
    assert whole(own[0]) != whole(own[1]) and own[0].colour == own[1].colour
