"""The page in a browser, where there is one: its tables sort and filter, and it fits any width."""

from __future__ import annotations

import html
import json
import math
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lra.core.records import Record
from lra.report import Rendered, render
from lra.report.model import Headline, Report, Row, Section, Table, Value
from lra.report.plots.style import Looks
from lra.report.write.html import report_html

from .sample import LENGTHS, baseline, efficiency, error, quality

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium")

DRIVER = """
<script>
const table = document.querySelector("section table.numbers");
const cells = (column) => [...table.tBodies].map((body) =>
  [...body.rows].filter((row) => !row.hidden && !body.hidden && !row.classList.contains("group"))
    .map((row) => row.cells[column].textContent.trim()));
const names = () => cells(0);
const heading = table.tHead.rows[0].cells[5];
const found = { before: names() };
for (const name of ["up", "down", "back"]) {
  heading.querySelector("button").click();
  found[name] = names();
  found[name + " cells"] = cells(5).map((group) => group.map((text) => text.split(" ")[0]));
  found[name + " aria"] = heading.getAttribute("aria-sort");
}
const input = document.querySelector(".filter input");
input.value = "PERFORMER";
input.dispatchEvent(new Event("input"));
found.filtered = names();
found.told = document.querySelector(".filter [role=status]").textContent;
input.value = "";
input.dispatchEvent(new Event("input"));
found.again = names();
const shown = [...document.querySelectorAll("thead button")].filter((b) => b.checkVisibility());
found.buttons = shown.map((button) => {
  button.focus();
  return document.activeElement === button && button.tabIndex === 0 && button.type === "button";
});
found.sorted = table.querySelectorAll("[aria-sort]").length;
const out = document.createElement("pre");
out.id = "found";
out.textContent = JSON.stringify(found);
document.body.append(out);
</script>
"""


REFERENCE = Path(__file__).resolve().parents[2] / "reports/reference/index.html"
WIDTHS = {"desktop": 1180, "phone": 390}
HEIGHT = 900
MEASURE = """
<script>
const box = (element) => {
  const { left, top, right, bottom } = element.getBoundingClientRect();
  return [left, top, right, bottom];
};
const unfolded = () => {
  for (const part of document.querySelectorAll("details")) part.open = true;
  return document.body.innerText;
};
parent.postMessage({
  window: [innerWidth, innerHeight],
  wide: Math.max(document.documentElement.scrollWidth, document.body.scrollWidth),
  headline: box(document.querySelector("h1")),
  answer: box(document.querySelector(".answer p")),
  screen: box(document.querySelector(".headline")),
  height: document.documentElement.scrollHeight,
  words: unfolded().match(/[^ \\n\\t]+/g).length,
}, "*");
</script>
"""
FRAME = """
<!doctype html>
<body>
<script>
addEventListener("message", (message) => {
  const out = document.createElement("pre");
  out.id = "found";
  out.textContent = JSON.stringify(message.data);
  document.body.append(out);
});
</script>
<iframe src="page.html" style="border: 0; width: %dpx; height: %dpx"></iframe>
</body>
"""
"""No window of a browser is as narrow as a phone; a frame is."""


def browse(page: Path, profile: Path, *what: str) -> str:
    """Standard output of the browser under the flags `what`, after the scripts of the page."""
    assert BROWSER is not None
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"]
    flags += ["--disable-background-networking", "--disable-component-update", "--disable-quic"]
    command = [BROWSER, *flags, f"--user-data-dir={profile}", *what, page.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout


def with_script(page: Path, script: str, place: Path) -> Path:
    """A copy of the page in which a script runs after those of its own."""
    text = page.read_text(encoding="utf-8").replace("</body>", f"{script}</body>")
    (place / "page.html").write_text(text, encoding="utf-8")
    return place / "page.html"


def told(page: Path, place: Path, *what: str) -> dict[str, Any]:
    """Findings that the scripts of a page have written into it."""
    shown = browse(page, place / "profile", *what, "--dump-dom")
    found = re.search(r'<pre id="found">(.*?)</pre>', shown, re.DOTALL)
    assert found is not None, shown[-500:]
    answer: dict[str, Any] = json.loads(html.unescape(found[1]))
    return answer


def measured(page: Path, place: Path, width: int = 1280) -> dict[str, Any]:
    """Sizes of a page in a window, in pixels, and its words with all of it unfolded."""
    with_script(page, MEASURE, place)
    (place / "frame.html").write_text(FRAME % (width, HEIGHT), encoding="utf-8")
    return told(place / "frame.html", place, "--virtual-time-budget=20000")


def one_mechanism(name: str, shift: float = 0.0, **fields: Any) -> Iterator[Record]:
    """All that a run measures of one mechanism."""
    for task in LENGTHS:
        yield quality(name, task, 0.6 + shift, **fields)
    for length in (256, 512, 1024, 2048, 4096, 8192):
        seconds = 1e-5 * length * (1 + shift)
        for mode in ("train", "forward"):
            yield efficiency(name, length, mode, seconds, declared=("O(n)", "O(n)"), **fields)
        yield efficiency(name, length, "decode", seconds, direction="causal", **fields)
    for length in (256, 1024):
        yield error(name, length, 0.1 + shift, **fields)


def reference() -> Iterator[Record]:
    """As many mechanisms as the committed records have."""
    for place, name in enumerate(
        ("sdpa", "identity", "local", *(f"mechanism_{n}" for n in range(18)))
    ):
        yield from one_mechanism(name, place / 100)
    yield from (baseline(task) for task in LENGTHS)


@pytest.fixture(scope="module")
def found(rendered: Rendered, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    place = tmp_path_factory.mktemp("browser")
    return told(with_script(rendered.page, DRIVER, place), place)


def test_a_click_sorts_each_group_and_the_third_restores_the_order(found: dict[str, Any]) -> None:
    before = found["before"]
    assert sorted(map(len, before))[-1] > 1
    assert [sorted(group) for group in found["up"]] == [sorted(group) for group in before]
    assert found["back"] == before and found["back aria"] is None
    assert (found["up aria"], found["down aria"]) == ("ascending", "descending")
    assert found["up"] != found["down"]


def test_numbers_sort_as_numbers_and_words_stay_below(found: dict[str, Any]) -> None:
    """The column is Pathfinder's, where a training of the sample ran out of time."""
    most, words = 0, 0
    for direction, sign in (("up", 1), ("down", -1)):
        for cells in found[f"{direction} cells"]:
            numbers = [sign * float(cell) for cell in cells if re.match(r"[\d.]+$", cell)]
            assert numbers == sorted(numbers)
            # A failed cell has no number and stays below.
            assert all(re.match(r"[\d.]+$", cell) for cell in cells[: len(numbers)])
            most, words = max(most, len(numbers)), words + len(cells) - len(numbers)
    assert most > 1 and words > 0


def test_never_sorts_behind_every_length(tmp_path: Path) -> None:
    """A mechanism that pays at no length has an infinite one."""
    lengths = {"e": math.inf, "a": 0.0, "d": 610.0, "f": math.inf, "b": 300.0, "c": 410.0}
    rows = tuple(Row(name, (Value(f"{n:g}", "", n),)) for name, n in lengths.items())
    table = Table("t-1", "T", "C.", "mechanism", ("pays from",), rows)
    report = Report("t", "", Headline(("Done.",)), (Section(topic="S", tables=(table,)),))
    (tmp_path / "plain.html").write_text(report_html(report, Looks()), encoding="utf-8")
    script = """<script>
    const table = document.querySelector("section table.numbers"), found = {};
    for (const name of ["up", "down"]) {
      table.tHead.rows[0].cells[1].querySelector("button").click();
      found[name] = [...table.tBodies[0].rows].map((row) => row.cells[0].textContent).join("");
    }
    const out = document.createElement("pre");
    out.id = "found";
    out.textContent = JSON.stringify(found);
    document.body.append(out);
    </script>"""
    page = with_script(tmp_path / "plain.html", script, tmp_path)
    assert told(page, tmp_path) == {"up": "abcdef", "down": "efdcba"}


def test_a_filter_leaves_the_rows_that_have_the_words(found: dict[str, Any]) -> None:
    left = [name for group in found["filtered"] for name in group]
    assert left and all("performer" in name for name in left)
    assert re.fullmatch(r"\d+ rows?", found["told"])
    assert found["again"] == found["before"]


def test_every_sort_button_takes_the_focus_and_one_column_says_that_it_sorts(
    found: dict[str, Any],
) -> None:
    """A button with the focus is pressed by the browser on Enter and on space."""
    assert len(found["buttons"]) > 10 and all(found["buttons"])
    assert found["sorted"] == 0
    assert found["up aria"] == "ascending"


@pytest.mark.parametrize("device", WIDTHS)
def test_the_page_fits_its_window_and_begins_with_the_answer(
    rendered: Rendered, tmp_path: Path, device: str
) -> None:
    width = WIDTHS[device]
    seen = measured(rendered.page, tmp_path, width)
    assert seen["window"][0] == width
    assert seen["wide"] <= width
    for name in ("headline", "answer"):
        left, top, right, bottom = seen[name]
        assert 0 <= left < right <= width and 0 <= top < bottom <= HEIGHT, name


def test_the_page_of_the_reference_has_its_answer_on_one_screen_and_is_short(
    tmp_path: Path,
) -> None:
    seen = measured(REFERENCE, tmp_path)
    assert 400 < seen["screen"][3] <= HEIGHT
    # Unfolded; records of decoders and of each slot of encoder-decoders have about 3,800 of them.
    assert HEIGHT < seen["height"] < 30_000 and 1000 < seen["words"] < 19_000
    assert REFERENCE.stat().st_size < 3_000_000


def test_the_page_of_one_mechanism_beside_the_reference_is_short(tmp_path: Path) -> None:
    page = render([*one_mechanism("performer")], [*reference()], tmp_path / "out", title="x").page
    seen = measured(page, tmp_path)
    assert HEIGHT < seen["height"] < 6000 and 1000 < seen["words"] < 15_000
    # Nothing of the reference is lost: its rows are folded, or a click away.
    folded = page.read_text(encoding="utf-8").partition('id="scaling"')[2]
    assert "mechanism_17</a></th>" in folded.partition("<details>")[2]


@pytest.mark.parametrize("device", WIDTHS)
def test_a_screenshot_is_no_blank(rendered: Rendered, tmp_path: Path, device: str) -> None:
    from matplotlib.image import imread

    picture = tmp_path / f"{device}.png"
    size = f"--window-size={WIDTHS[device]},{HEIGHT}"
    browse(
        rendered.page, tmp_path / "profile", "--hide-scrollbars", size, f"--screenshot={picture}"
    )
    pixels = imread(picture)[..., :3]
    assert pixels.shape[:2] == (HEIGHT, WIDTHS[device])
    dark = (pixels.mean(axis=-1) < 0.5).mean(axis=1)
    # Ink in every quarter, in the headline too, and more white than ink.
    assert all(quarter.max() > 0.01 for quarter in dark.reshape(4, -1))
    assert dark[:120].max() > 0.01 and dark.mean() < 0.3


@pytest.mark.parametrize(("columns", "numeric"), [(8, True), (14, True), (7, False), (18, False)])
def test_on_paper_no_column_is_cut_off(tmp_path: Path, columns: int, numeric: bool) -> None:
    """Nothing scrolls there: what lies beyond the edge is in no text of the paper."""
    reader = shutil.which("pdftotext")
    if reader is None:
        pytest.skip("no pdftotext")
    text = "12.3" if numeric else "learned one"
    cells = [[Value(text, "0.123")] * (columns - 1) + [Value(last)] for last in "QXZ"]
    rows = tuple(
        Row(f"mechanism (features={n}, window=512)", tuple(c)) for n, c in enumerate(cells)
    )
    names = tuple(f"name {n}" for n in range(columns))
    table = Table("t-1", "T", "C.", "mechanism", names, rows, numeric=numeric)
    report = Report("t", "", Headline(("Done.",)), (Section(topic="S", tables=(table,)),))
    page, paper = tmp_path / "page.html", tmp_path / "page.pdf"
    page.write_text(report_html(report, Looks()), encoding="utf-8")
    browse(page, tmp_path / "profile", "--no-pdf-header-footer", f"--print-to-pdf={paper}")
    command = [reader, str(paper), "-"]
    printed = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    assert [last for last in "QXZ" if last not in printed] == []
    assert "Show rows whose name contains" not in printed and "Skip to" not in printed
