"""Looks of mechanisms."""

from __future__ import annotations

from lra.report.style import _KNOWN, inline, look


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
