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
from lra.report.model import Section

from .sample import data, edited, efficiency, mechanism, quality, store

TEMPLATES = Path(lra.report.__file__).parent / "write" / "templates"
AWKWARD = "my|odd_1%\n<b>&$x$"
_VOID = {"meta", "br", "link", "img", "input", "hr"}


class Page(HTMLParser):
    """Resources that a browser would load, and whether every element is closed."""

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


def pages(rendered: Rendered) -> list[Path]:
    """The report and its cards."""
    return [rendered.page, *sorted((rendered.page.parent / "mechanisms").glob("*.html"))]


def _digest(out: Path) -> dict[str, str]:
    files = sorted(path for path in out.rglob("*") if path.is_file())
    return {
        path.relative_to(out).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
    }


def test_every_file_is_written_and_the_terminal_gets_its_lines(rendered: Rendered) -> None:
    names = set(_digest(rendered.page.parent))
    assert {"index.html", "report.csv", "report.md", "report.tex"} <= names
    cards = {Path(name).stem for name in names if name.startswith("mechanisms/")}
    assert cards == {"performer", "identity", "sdpa", "linear"}
    assert {"plots/tradeoff.svg", "plots/gallery.svg"} <= names
    assert len(rendered.findings.headline) > 0 and rendered.findings.table.count("\n") > 3


def test_pages_load_nothing_and_are_well_formed(rendered: Rendered) -> None:
    for file in pages(rendered):
        text = file.read_text()
        page = Page(text)
        assert page.open == []
        assert not {"link", "img", "iframe", "object"} & set(page.tags)
        # One script, of ours: nothing that a record says comes near it.
        assert page.tags["script"] == 1 and text.count("<script>") == 1
        script = text.split("<script>")[1].split("</script>")[0].strip()
        assert script == (TEMPLATES / "page.js").read_text(encoding="utf-8").strip()
        assert not re.search(r"fetch\(|XMLHttp|import|eval|innerHTML|https?:", script)
        wanted = ("src", "href", "xlink:href", "srcset")
        targets = [value for _, name, value in page.attributes if name in wanted]
        inside = [value for value in targets if value.startswith("data:image/png;base64,")]
        links = [value for value in targets if value not in inside and not value.startswith("#")]
        # Nothing but the report and its cards, beside each other.
        assert all((file.parent / link).is_file() for link in links)
        assert re.findall(r"@import|url\((?!#)", text) == []


def test_every_link_has_its_target_and_no_id_stands_twice(rendered: Rendered) -> None:
    for file in pages(rendered):
        page = Page(file.read_text())
        ids = Counter(value for _, name, value in page.attributes if name == "id")
        # matplotlib defines a marker again wherever it draws it, the same by construction.
        ours = {k: number for k, number in ids.items() if not re.search(r"-[mCp][0-9a-f]+$", k)}
        assert [key for key, number in ours.items() if number > 1] == []
        links = [
            value[1:]
            for _, name, value in page.attributes
            if name in ("href", "xlink:href") and value.startswith("#")
        ]
        assert set(links) <= set(ids)


def test_every_drawing_has_an_alternative_in_words(rendered: Rendered) -> None:
    for file in pages(rendered):
        page = Page(file.read_text())
        drawings = [v for tag, name, v in page.attributes if (tag, name) == ("svg", "aria-label")]
        swatches = page.attributes.count(("svg", "aria-hidden", "true"))
        assert page.tags["svg"] - swatches == len(drawings) and all(drawings)


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
from report.sample import store
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
        assert "<metadata" not in text and "Matplotlib" not in text


def test_awkward_names_survive_everywhere(tmp_path: Path) -> None:
    spec = data(AWKWARD, length=64, hash="d0")
    records: list[Record] = [
        quality(edited(AWKWARD), AWKWARD, 0.95, data_spec=spec),
        quality("sdpa", AWKWARD, 0.9, data_spec=spec),
        *[efficiency(AWKWARD, n, mode) for n in (512, 1024) for mode in ("forward", "train")],
        *[efficiency("sdpa", n, mode) for n in (512, 1024) for mode in ("forward", "train")],
        quality(mechanism("performer", kernel="a|b"), AWKWARD, status="error", data_spec=spec),
    ]
    result = render(records, [], tmp_path, title=AWKWARD)
    shown = AWKWARD.replace("\n", r"\n")
    for file in pages(result):
        page = Page(file.read_text())
        assert page.open == [] and page.tags["b"] == 0
    assert Page(result.page.read_text()).text.count(shown) >= 5
    assert shown in result.findings.table and shown in result.findings.headline[0]
    assert AWKWARD in (tmp_path / "report.csv").read_text()
    broken = AWKWARD.split("\n")[0] + "\n"
    for file in (result.page, tmp_path / "report.md"):
        assert broken not in file.read_text()
    drawn = [plot.read_text() for plot in (tmp_path / "plots").iterdir()]
    assert any("my|odd_1%\\n&lt;b&gt;&amp;$x$" in text for text in drawn)


def test_a_mechanism_whose_name_is_a_path_has_a_card_inside_the_folder(tmp_path: Path) -> None:
    names = ("../../up", "a/b", "x:Y", "n" * 300, "", ".")
    records = [quality(name, "text", 0.5) for name in names if name]
    result = render(records, [], tmp_path / "out", title="x")
    assert {file.name for file in tmp_path.iterdir()} == {"out"}
    assert len(pages(result)) == len(records) + 1


def test_an_empty_store_gives_a_page_that_says_what_to_do(tmp_path: Path) -> None:
    _, reference = store()
    result = render([], reference, tmp_path, title="empty")
    assert len(result.findings.headline) == 1 and result.findings.table == ""
    assert "python -m lra run --impl performer" in result.findings.headline[0]
    assert (tmp_path / "report.csv").read_text().count("\n") == 1


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    file = tmp_path / "taken"
    file.write_text("")
    with pytest.raises(LraError, match="taken") as caught:
        render([], [], file, title="x")
    assert "\n" not in str(caught.value)


def test_plots_and_cards_of_an_earlier_report_do_not_stay(tmp_path: Path) -> None:
    old = [tmp_path / "plots/old.svg", tmp_path / "mechanisms/old.html", tmp_path / "compare.md"]
    for file in old:
        file.parent.mkdir(exist_ok=True)
        file.write_text("")
    render([], [], tmp_path, title="x")
    assert not any(file.exists() for file in old)


def test_a_section_of_others_comes_first_and_their_files_are_written(tmp_path: Path) -> None:
    first = Section(topic="Changes", text=("Nothing changed.",))
    run, reference = store()
    result = render(
        run, reference, tmp_path, title="x", first=first, files={"compare.md": "Nothing."}
    )
    ids = re.findall(r'<section id="([a-z-]+)"', result.page.read_text())
    assert ids[0] == "changes" and (tmp_path / "compare.md").read_text() == "Nothing."


def test_the_page_of_one_run_is_short(rendered: Rendered) -> None:
    words = len(Page(rendered.page.read_text()).text.split())
    assert words < 6000
