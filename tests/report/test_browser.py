"""The page in a browser, where there is one: its tables sort and filter."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from lra.report import Rendered

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium")

DRIVER = """
<script>
const table = document.querySelector("#quality-1-title").closest(".table").querySelector("table");
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
input.value = "LINEAR";
input.dispatchEvent(new Event("input"));
found.filtered = names();
found.told = document.querySelector(".filter [role=status]").textContent;
input.value = "";
input.dispatchEvent(new Event("input"));
found.again = names();
const out = document.createElement("pre");
out.id = "found";
out.textContent = JSON.stringify(found);
document.body.append(out);
</script>
"""


def opened(page: Path, profile: Path) -> str:
    """What the page is once its scripts have run."""
    assert BROWSER is not None
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"]
    flags += ["--disable-background-networking", "--disable-component-update", "--disable-quic"]
    command = [BROWSER, *flags, f"--user-data-dir={profile}", "--dump-dom", page.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout


@pytest.fixture(scope="module")
def found(rendered: Rendered, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    place = tmp_path_factory.mktemp("browser")
    text = rendered.page.read_text(encoding="utf-8").replace("</body>", f"{DRIVER}</body>")
    (place / "page.html").write_text(text, encoding="utf-8")
    shown = opened(place / "page.html", place / "profile")
    told = re.search(r'<pre id="found">(.*?)</pre>', shown, re.DOTALL)
    assert told is not None, shown[-500:]
    return json.loads(html.unescape(told[1]))


def test_a_click_sorts_each_group_and_the_third_restores_the_order(found: dict[str, Any]) -> None:
    before = found["before"]
    assert sorted(map(len, before))[-1] > 1
    assert [sorted(group) for group in found["up"]] == [sorted(group) for group in before]
    assert found["back"] == before and found["back aria"] is None
    assert (found["up aria"], found["down aria"]) == ("ascending", "descending")
    assert found["up"] != found["down"]


def test_numbers_sort_as_numbers_and_words_stay_below(found: dict[str, Any]) -> None:
    """Of Pathfinder, where a training of the sample ran out of time."""
    most, words = 0, 0
    for direction, sign in (("up", 1), ("down", -1)):
        for cells in found[f"{direction} cells"]:
            numbers = [sign * float(cell) for cell in cells if re.match(r"[\d.]+$", cell)]
            assert numbers == sorted(numbers)
            # What failed has no number and stays below.
            assert all(re.match(r"[\d.]+$", cell) for cell in cells[: len(numbers)])
            most, words = max(most, len(numbers)), words + len(cells) - len(numbers)
    assert most > 1 and words > 0


def test_a_filter_leaves_the_rows_that_have_the_words(found: dict[str, Any]) -> None:
    left = [name for group in found["filtered"] for name in group]
    assert left and all("linear" in name for name in left)
    assert re.fullmatch(r"\d+ rows?", found["told"])
    assert found["again"] == found["before"]
