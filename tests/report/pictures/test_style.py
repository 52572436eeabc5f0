"""Looks of mechanisms."""

from __future__ import annotations

from lra.report.pictures.style import _KNOWN, inline, look, looks


def test_known_mechanisms_look_different_from_each_other_and_from_any_other() -> None:
    names = (*_KNOWN, "sdpa", "identity")
    looks = [(look(name).colour, str(look(name).dash)) for name in names]
    assert len(set(looks)) == len(names)
    strange = {(look(f"mine{n}").colour, str(look(f"mine{n}").dash)) for n in range(50)}
    assert not strange & set(looks)


def test_a_look_depends_on_the_name_alone() -> None:
    assert look("my_attention") == look("my_attention")
    assert look("performer", "performer") == look("performer")
    assert look("performer", "performer (features=8)").colour == look("performer").colour


def test_inline_drawings_have_ids_of_their_own() -> None:
    svg = '<?xml?><svg width="1pt" height="2pt" viewBox="0 0 1 2"><style>*{stroke: x}</style>'
    svg += '<g id="a"/><use xlink:href="#a"/><g clip-path="url(#b)"/></svg>'
    text = inline(svg, "p", 'says "so"')
    assert text.startswith(
        '<svg viewBox="0 0 1 2" id="p" role="img" aria-label="says &#34;so&#34;">'
    )
    assert 'id="p-a"' in text
    assert 'href="#p-a"' in text
    assert "url(#p-b)" in text
    assert "#p *{stroke" in text


def test_no_two_of_a_report_look_alike() -> None:
    peers = [(f"peer:{n}", f"peer:{n}") for n in range(30)]
    sweep = [("performer", f"performer (features={n})") for n in range(12)]
    drawn = [*((name, name) for name in (*_KNOWN, "sdpa", "identity")), *peers, *sweep]
    found = looks(drawn)
    assert len({(one.colour, str(one.dash), one.marker) for one in found.values()}) == len(drawn)
    assert looks(reversed(drawn)) == found


def test_strangers_differ_from_ours_by_dash_and_by_marker_too() -> None:
    ours = [(name, name) for name in (*_KNOWN, "sdpa", "identity")]
    known = looks(ours)
    for n in range(50):
        stranger = looks([*ours, (f"mine{n}", f"mine{n}")])[f"mine{n}", f"mine{n}"]
        alike = [one for one in known.values() if one.colour == stranger.colour]
        assert all(stranger.dash != one.dash for one in alike)
        assert all(stranger.marker != one.marker for one in alike)


def test_a_look_stays_unless_another_has_it() -> None:
    alone = looks([("mine", "mine")])["mine", "mine"]
    ours = [(name, name) for name in _KNOWN]
    beside = looks([*ours, ("mine", "mine")])
    assert beside["mine", "mine"].colour == alone.colour
    assert all(beside[key] == look(*key) for key in ours)


def test_ours_differ_by_dash_and_by_marker() -> None:
    found = [look(name) for name in (*_KNOWN, "sdpa", "identity")]
    assert len({(one.colour, one.marker) for one in found}) == len(found)
