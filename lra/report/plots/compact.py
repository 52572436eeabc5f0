"""Matplotlib's drawings in half the bytes, for a page with dozens of them."""

from __future__ import annotations

import re

_BETWEEN = re.compile(r">\s+<")
_PATH = re.compile(r' d="([^"]*)"')
_LETTER = re.compile(r"\s*([MLCQSZmlcqsz])\s*")
_MARKERS = re.compile(r'<g( clip-path="[^"]*")?>((?:<use [^>]*/>)+)</g>')
_STYLE = re.compile(r' style="([^"]*)"')
_ID = re.compile(r' id="([^"]*)"')
_REFERENCE = re.compile(r'(?:xlink:href="#|url\(#)([^")]*)')


_FONT = re.compile(r" font-family: ([^;]*);")
_NO_TURN = re.compile(r' transform="rotate\(-0 [^"]*"')


def compact(svg: str) -> str:
    """Return an SVG without spaces between elements and unused ids, with the font and the style of
    a line's markers given once."""
    svg = _BETWEEN.sub("><", svg)
    svg = _PATH.sub(_short_path, svg)
    svg = _MARKERS.sub(_shared_style, svg).replace(" stroke-dashoffset: 0;", "")
    fonts = set(_FONT.findall(svg))
    if len(fonts) == 1 and "*{" in svg:
        svg = _FONT.sub("", svg).replace("*{", f"*{{font-family: {fonts.pop()}; ", 1)
    svg = _NO_TURN.sub("", svg)
    known = set(_REFERENCE.findall(svg))
    return _ID.sub(lambda found: found[0] if found[1] in known else "", svg)


def _short_path(found: re.Match[str]) -> str:
    letters = _LETTER.sub(r"\1", found[1]).strip()
    return f' d="{letters}"'


def _shared_style(found: re.Match[str]) -> str:
    styles = set(_STYLE.findall(found[2]))
    if len(styles) != 1 or found[2].count("style=") != found[2].count("<use "):
        return found[0]
    return f'<g{found[1] or ""} style="{styles.pop()}">{_STYLE.sub("", found[2])}</g>'
