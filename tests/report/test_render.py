"""The whole report: self-contained, the same bytes every time, and clear when there is nothing."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import pytest

import lra.report
from lra.core.errors import LraError
from lra.core.records import Record
from lra.report import Rendered, render

from .sample import data, edited, efficiency, mechanism, quality, store

TEMPLATES = Path(lra.report.__file__).with_name("templates")
AWKWARD = "my|odd_1%\n<b>&$x$"
_VOID = {"meta", "br", "link", "img", "input", "hr"}


class _Page(HTMLParser):
    """What a browser would load, and whether every element is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.tags: Counter[str] = Counter()
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def _digest(out: Path) -> dict[str, str]:
    files = sorted(path for path in out.rglob("*") if path.is_file())
    return {
        path.relative_to(out).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
    }


def test_every_file_is_written_and_the_terminal_gets_its_lines(rendered: Rendered) -> None:
    assert sorted(_digest(rendered.page.parent)) == [
        "index.html",
        "plots/crossover-1.svg",
        "plots/front-1.svg",
        "plots/latency-1.svg",
        "plots/learning-1.svg",
        "plots/memory-1.svg",
        "plots/pattern-1.svg",
        "plots/quality-1.svg",
        "plots/ranks-1.svg",
        "plots/tradeoff-1.svg",
        "report.csv",
        "report.md",
        "report.tex",
    ]
    assert rendered.findings.headline[0].startswith("performer: 44.0 % on listops (sdpa 49.0 %")
    assert "mean of 5" in rendered.findings.table


def test_the_page_loads_nothing_and_is_well_formed(rendered: Rendered) -> None:
    text = rendered.page.read_text()
    page = _Page(text)
    assert page.open == []
    assert not {"link", "img", "iframe", "object"} & set(page.tags)
    # One script, of ours: nothing that a record says comes near it.
    assert page.tags["script"] == 1 and text.count("<script>") == 1
    script = text.split("<script>")[1].split("</script>")[0].strip()
    assert script == (TEMPLATES / "report.js").read_text(encoding="utf-8").strip()
    assert not re.search(r"fetch\(|XMLHttp|import|eval|innerHTML|https?:", script)
    targets = [
        value
        for _, name, value in page.attributes
        if name in ("src", "href", "xlink:href", "srcset")
    ]
    # The squares of a pattern stand in the page itself.
    inside = [value for value in targets if value.startswith("data:image/png;base64,")]
    assert len(inside) == page.tags["image"] > 0
    assert len(targets) > len(inside)
    assert all(value.startswith("#") for value in targets if value not in inside)
    assert re.findall(r"@import|url\((?!#)", text) == []


def test_every_link_has_its_target_and_no_id_stands_twice(rendered: Rendered) -> None:
    page = _Page(rendered.page.read_text())
    ids = Counter(value for _, name, value in page.attributes if name == "id")
    # matplotlib defines a marker again wherever it draws it; those are the same by construction.
    ours = {key: number for key, number in ids.items() if not re.search(r"-[mCp][0-9a-f]+$", key)}
    assert [key for key, number in ours.items() if number > 1] == []
    links = [
        value[1:]
        for _, name, value in page.attributes
        if name in ("href", "xlink:href", "aria-labelledby") and value.startswith("#")
    ]
    assert set(links) <= set(ids)


def test_every_drawing_has_an_alternative_in_words(rendered: Rendered) -> None:
    page = _Page(rendered.page.read_text())
    drawings = [
        value for tag, name, value in page.attributes if (tag, name) == ("svg", "aria-label")
    ]
    swatches = page.attributes.count(("svg", "aria-hidden", "true"))
    assert page.tags["svg"] - swatches == len(drawings) == 9
    assert all("sdpa" in words for words in drawings[:8])
    assert "16 positions: 28.9 % of 16" in drawings[8]


def test_both_machines_are_named_and_their_times_apart(rendered: Rendered) -> None:
    text = (rendered.page.parent / "report.md").read_text()
    ours, theirs = text.split("## Reference timings", 1)
    own_times = ours.split("## Latency", 1)[1].split("## Quality against speed", 1)[0]
    assert "Other CPU" not in own_times
    assert "(reference)" not in own_times
    assert "Other CPU 1, 8 cores" in theirs


def test_another_process_and_order_give_the_same_bytes_without_torch(
    rendered: Rendered, tmp_path: Path
) -> None:
    root = Path(__file__).resolve().parents[2]
    script = f"""
import random, sys
sys.path[:0] = [{str(root)!r}, {str(root / "tests")!r}]
from pathlib import Path
import lra.report
heavy = {{"torch", "pandas", "seaborn", "matplotlib", "jinja2"}}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
from lra.core.records import decode, encode
from report.sample import edited, store
run, reference = store()
random.Random(7).shuffle(run)
random.Random(8).shuffle(reference)
run = [decode(encode(record)) for record in run]
lra.report.render(run, reference, Path({str(tmp_path)!r}), title="performer at mini")
assert "torch" not in sys.modules
"""
    command = [sys.executable, "-W", "error", "-c", script]
    subprocess.run(command, check=True, env={**os.environ, "PYTHONHASHSEED": "1"})
    assert _digest(tmp_path) == _digest(rendered.page.parent)


def test_no_date_of_today_and_no_version_of_matplotlib_in_a_plot(rendered: Rendered) -> None:
    for plot in (rendered.page.parent / "plots").iterdir():
        text = plot.read_text()
        assert "<metadata" not in text
        assert "Matplotlib" not in text


def test_awkward_names_survive_everywhere(tmp_path: Path) -> None:
    records: list[Record] = [
        quality(
            edited(AWKWARD),
            AWKWARD,
            0.95,
            data_spec=data(AWKWARD, length=64, hash="d0"),
        ),
        quality("sdpa", AWKWARD, 0.9, data_spec=data(AWKWARD, length=64, hash="d0")),
        *[efficiency(AWKWARD, n, mode) for n in (512, 1024) for mode in ("forward", "train")],
        *[efficiency("sdpa", n, mode) for n in (512, 1024) for mode in ("forward", "train")],
        quality(
            mechanism("performer", kernel="a|b"),
            AWKWARD,
            status="error",
            data_spec=data(AWKWARD, hash="d1"),
        ),
    ]
    result = render(records, [], tmp_path, title=AWKWARD)
    shown = AWKWARD.replace("\n", r"\n")
    page = _Page(result.page.read_text())
    assert page.open == []
    assert page.tags["b"] == 0
    assert page.text.count(shown) >= 5
    assert shown in result.findings.table
    assert shown in result.findings.headline[0]
    assert AWKWARD in (tmp_path / "report.csv").read_text()
    told = [
        *result.findings.headline,
        (tmp_path / "report.md").read_text(),
        result.page.read_text(),
    ]
    broken = AWKWARD.split("\n")[0] + "\n"
    for words in told:
        place = words.find(broken)
        assert place < 0, words[place - 80 : place + 40]
    assert any(f"speed of {shown} are of different versions" in words for words in told)
    for plot in (tmp_path / "plots").iterdir():
        assert "my|odd_1%\\n&lt;b&gt;&amp;$x$" in plot.read_text(), plot.name


def test_long_names_are_whole_in_tables_and_short_in_plots(tmp_path: Path) -> None:
    name = "my_module.MyVeryLongAttentionClass"
    several = [
        mechanism(name, temperature=n / 2, mask_form=form, pad_to=64)
        for n in (1, 2)
        for form in ("keep", "drop")
    ]
    names = ["sdpa", "identity", *several]
    run = [quality(one, task, 0.6) for one in names for task in ("text", "image")]
    for length in (512, 1024):
        run += [efficiency(one, length, mode) for one in names for mode in ("forward", "train")]
    result = render(run, [], tmp_path, title="long")
    whole = f"{name} (mask_form=keep, temperature=1.0)"
    text = result.page.read_text()
    assert text.count(f"{whole}</th>") == 8
    assert text.count("Long names are cut short") == 7
    for plot in (tmp_path / "plots").iterdir():
        written = re.findall(r"<text[^>]*>([^<]*)</text>", plot.read_text())
        short = [words for words in written if "\N{HORIZONTAL ELLIPSIS}" in words]
        # Of each name no more than a line's length, with an exponent or a size behind it.
        assert len(set(short)) >= len(several), plot.name
        assert max(map(len, written)) < 60, plot.name
        assert max(map(len, short)) <= 28 + len(", 50 MB"), plot.name


def test_an_empty_store_gives_a_page_that_says_what_to_do(tmp_path: Path) -> None:
    _, reference = store()
    result = render([], reference, tmp_path, title="empty")
    assert len(result.findings.headline) == 1
    assert "python -m lra run --impl performer" in result.findings.headline[0]
    assert result.findings.table == ""
    assert "no record to report" in result.page.read_text()
    assert (tmp_path / "report.csv").read_text().count("\n") == 1


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    file = tmp_path / "taken"
    file.write_text("")
    with pytest.raises(
        LraError, match=r"cannot write the report to '.*taken'.*choose another"
    ) as e:
        render([], [], file, title="x")
    assert "\n" not in str(e.value)


def test_plots_of_an_earlier_report_do_not_stay(tmp_path: Path) -> None:
    (tmp_path / "plots").mkdir()
    (tmp_path / "plots" / "old.svg").write_text("")
    render([], [], tmp_path, title="x")
    assert list((tmp_path / "plots").iterdir()) == []


def test_sections_of_several_settings_are_named_by_what_differs(tmp_path: Path) -> None:
    records = [efficiency("linear", n, batch=b) for n in (512, 1024) for b in (1, 4)]
    told = render(records, [], tmp_path, title="two").page.with_name("report.md").read_text("utf-8")
    for batch in (1, 4):
        assert f"## Latency: batch {batch}\n" in told and f"## Memory: batch {batch}\n" in told
    page = (tmp_path / "index.html").read_text("utf-8")
    assert '<section id="latency-1">' in page and '<section id="latency-2">' in page


def test_sections_stand_in_reading_order(rendered: Rendered) -> None:
    """What won first, then where and how surely, how it was measured, and what failed."""
    text = rendered.page.read_text(encoding="utf-8")
    assert re.findall(r'<section id="([a-z-]+?)(?:-\d+)?">', text) == [
        "tradeoff",
        "front",
        "quality",
        "learning",
        "published",
        "latency",
        "memory",
        "crossover",
        "growth",
        "gallery",
        "reference",
        "protocol",
        "provenance",
        "not-ok",
    ]
