"""Nothing of a stranger's text is invisible, and nothing else of it changes."""

import sys
import unicodedata

import pytest

from lra.core.escape import escape_controls, escape_lines

MARKS = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c"


@pytest.mark.parametrize("mark", [*MARKS, *"\u200b\u200d\ufeff\u00ad\u3164\u034f\u2028\0\x1b"])
def test_an_invisible_character_is_an_escape(mark):
    shown = escape_controls(f"a{mark}b")
    assert shown.isprintable() and mark not in shown and len(shown) > len("a\\b")


def test_no_control_of_unicode_is_left():
    every = map(chr, range(sys.maxunicode + 1))
    hidden = [c for c in every if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp")]
    assert len(hidden) > 200
    assert escape_controls("".join(hidden)).isprintable()


@pytest.mark.parametrize("text", ["", "a b", "\u00e9\u4e2d\u0639\u00d7\u00b1\u00b5", "x" * 1000])
def test_visible_text_stays(text):
    assert escape_controls(text) == escape_lines(text) == text


def test_lines_stay_lines_where_there_are_several():
    assert escape_lines("a\u202eb\nc\td\r\n") == "a\\u202eb\nc\\td\\r\n"
    assert escape_controls("a\nb") == "a\\nb"
