"""Other people's attention on the command line: files, entry points, peers, and what goes wrong."""

from __future__ import annotations

import json
import os
import re
import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest

from .conftest import ROOT, TINY

ZOO = ROOT / "tests" / "adapters" / "zoo.py"
BAD = {
    "raising": "raise ValueError('no such\\nthing')",
    "leaving": "import sys; sys.exit('bye')",
    "ending": "import os; os._exit(3)",
    "killed": "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
    "empty": "",
    "unreadable": "def (:",
    "grids": "import torch\nclass Grid(torch.nn.Module):\n    def forward(self, x, grid): return x",
}
"""Files that cannot be used, by name."""

REASONS = {
    "raising": "no such thing (raising.py, line 1)",
    "leaving": "SystemExit: bye",
    "ending": "exit code 3",
    "killed": "SIGKILL",
    "empty": "found 0",
    "unreadable": "invalid syntax",
    "grids": "it asks for grid",
}

BROKEN = """
from zoo import Keeps

class MaskIgnored(Keeps):
    def forward(self, x, mask=None):
        return self.attend(x)

class Turned(Keeps):
    def forward(self, x, mask=None):
        return super().forward(x, mask).mT

class MaskTurned(Keeps):
    def forward(self, x, mask=None):
        return super().forward(x, None if mask is None else ~mask)

class NoTwin(Keeps):
    def __init__(self, dim, heads, causal=False):
        assert not causal, "one way alone"
        super().__init__(dim, heads)

def first(q, k, v, is_causal=False):
    import torch
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=is_causal)
"""


SELF_ONLY = """
from torch import nn
from zoo import softmax, triangle

class Mine(nn.Module):
    def forward(self, q, k, v, mask=None):
        n = q.shape[2]
        keep = triangle(n).mT | triangle(n)
        return softmax(q, k, v, keep if mask is None else keep & mask[:, None, None, :])
"""


CRASHES = """
from torch import nn

class Mine(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.inner = nn.Linear(dim + 1, dim)

    def forward(self, x, mask=None):
        return self.inner(x)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copy(ZOO, tmp_path)
    for name, source in BAD.items():
        (tmp_path / f"{name}.py").write_text(source)
    (tmp_path / "broken.py").write_text(BROKEN)
    return tmp_path


def test_honest_strangers_hold_what_they_seem_to_claim(lra, folder: Path) -> None:
    names = ("Keeps", "Registered", "function_of_pairs")
    laws = "output,causality,cross,refusal"
    impls = ",".join([*(f"zoo.py:{name}" for name in names), "torch.nn:MultiheadAttention"])
    ran = lra("verify", "--impl", impls, "--check", laws)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    for name in (*names, "MultiheadAttention"):
        assert f"\n{name}: " in f"\n{ran.stdout}"
    assert "key_padding_mask: " in ran.stdout
    assert f"torch {__import__('torch').__version__}" in ran.stdout
    assert not (folder / "results").exists()


def test_broken_ones_are_exit_1_with_the_law_and_the_command(lra, folder: Path) -> None:
    impls = "broken.py:MaskIgnored,broken.py:Turned,identity"
    ran = lra("verify", "--impl", impls, "--check", "output,padding_content")
    assert ran.returncode == 1, ran.stdout + ran.stderr
    ignored, turned, ours = ran.stdout.split("\n\n")[:3]
    assert ignored.startswith("MaskIgnored: ") and re.search("FAILED +padding_content", ignored)
    assert f"--impl {folder / 'broken.py'}:MaskIgnored --check padding_content" in ignored
    assert turned.startswith("Turned: ") and re.search("FAILED +output", turned)
    assert "shape" in turned
    assert ours.startswith("identity: 2 held")


def test_a_mask_of_another_meaning_is_exit_3_and_the_setting_that_helps(lra, folder: Path) -> None:
    words = ("verify", "--impl", "broken.py:MaskTurned", "--check", "output,padding_content")
    ran = lra(*words)
    assert ran.returncode == 3 and "FAILED" not in ran.stdout, ran.stdout + ran.stderr
    (advice,) = {*re.findall(r"--set \w+=\w+", ran.stdout)}
    ran = lra(*words, *advice.split())
    assert ran.returncode == 0 and "MaskTurned: 2 held" in ran.stdout, ran.stdout + ran.stderr


def test_what_no_law_says_of_a_causal_flag_is_a_line(lra, folder: Path) -> None:
    ran = lra("verify", "--impl", "broken.py:first,broken.py:NoTwin", "--check", "output,causality")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    first, without = ran.stdout.split("\n\n")[:2]
    assert "  is_causal with 3 queries and 5 keys: first keys\n" in first
    assert re.search(r"held +output", without) and re.search(r"not claimed +causality", without)
    assert "  not causal: it cannot be built so: AssertionError: one way alone\n" in without


def test_what_cannot_be_used_is_a_row_each_and_the_others_go_on(lra, folder: Path) -> None:
    impls = ",".join([*(f"{name}.py" for name in BAD), "zoo.py:Keeps", "peer:linformer"])
    ran = lra("verify", "--impl", impls, "--check", "output", "--set", "k=3")
    assert ran.returncode == 4, ran.stdout + ran.stderr
    lines = ran.stdout.splitlines()
    for name, reason in REASONS.items():
        (row,) = (line for line in lines if line.startswith(f"{name}: "))
        assert reason in row, row
        assert str(folder) not in row
    assert any(line.startswith("Keeps: 1 held") for line in lines)
    if find_spec("linformer") is None:
        (row,) = (line for line in lines if line.startswith("peer:linformer: "))
        assert "skipped" in row and "'linformer'" in row and '".[peers]"' in row


def test_a_run_trains_strangers_and_goes_on_past_bad_ones(lra, folder: Path) -> None:
    impls = "zoo.py:Keeps,zoo.py:BuiltCausal,raising.py,zoo.py:Configurable,broken.py:Turned"
    ran = lra(
        "run", "--impl", impls, *TINY, "--json",
        "--set", "training.steps=2", "--set", "Configurable.power=2.0",
    )  # fmt: skip
    assert ran.returncode == 4, ran.stdout + ran.stderr
    records = json.loads(ran.stdout)
    ends: dict[tuple[str, str], tuple[str, str]] = {
        (r["cell"]["mechanism"]["name"], r["cell"]["type"]): (
            r["status"],
            (r["failure"] or {}).get("message", ""),
        )
        for r in records
        if "mechanism" in r["cell"]
    }
    for name in ("Keeps", "Configurable"):
        assert ends[name, "quality"] == ends[name, "efficiency"] == ("ok", "")
    status, unable = ends["BuiltCausal", "quality"]
    assert status == "unsupported" and "BuiltCausal" in unable and "`mask`" in unable
    assert ends["BuiltCausal", "efficiency"] == ("ok", "")
    for kind in ("quality", "efficiency"):
        assert ends["raising", kind][0] == ends["Turned", kind][0] == "error"
        assert "no such thing" in ends["raising", kind][1]
    (configured,) = (
        r for r in records if r["cell"].get("mechanism", {}).get("name") == "Configurable"
        and r["cell"]["type"] == "quality"
    )  # fmt: skip
    assert configured["cell"]["mechanism"]["config"]["power"] == 2.0
    assert str(folder) not in ran.stdout

    again = lra("run", "--impl", "zoo.py:Keeps", *TINY, "--set", "training.steps=2")
    assert again.returncode == 0 and "0 cells to run" in again.stderr, again.stderr
    assert lra("report").returncode == 0
    text = (folder / "reports/default/report.md").read_text()
    assert "Keeps" in text and "Configurable" in text


def test_a_setting_that_is_needed_is_asked_for(lra, folder: Path) -> None:
    ran = lra("verify", "--impl", "zoo.py:Configurable", "--check", "output")
    assert ran.returncode == 1
    assert "--set power=VALUE" in ran.stdout
    assert "Error" not in ran.stdout + ran.stderr, "the names of our classes are nobody's business"
    ran = lra("verify", "--impl", "zoo.py:Configurable", "--check", "output", "--set", "power=2.0")
    assert ran.returncode == 0, ran.stdout
    for wrong, words in (
        ("powr=2.0", ("'power'",)),
        ("mask_form=kep", ("'Configurable'", "'kep'", "additive, ignore, keep")),
        ("bend=abc", ("bend = 'abc'", "number")),
    ):
        ran = lra("verify", "--impl", "zoo.py:Configurable", "--set", wrong)
        (line,) = ran.stderr.splitlines()
        assert ran.returncode == 2 and all(word in line for word in words)


@pytest.mark.parametrize("verb", [["verify"], ["run", *TINY], ["show"]])
def test_a_wrong_name_in_a_file_is_one_line(lra, folder: Path, verb: list[str]) -> None:
    ran = lra(*verb, "--impl", "zoo.py:Keps,identity")
    (line,) = ran.stderr.splitlines()
    assert "zoo.py: " in line and "'Keps'" in line and line.endswith("'Keeps'?")
    assert ran.returncode == 2 and not ran.stdout and not (folder / "results").exists()


def test_a_file_of_several_classes_asks_for_one_before_anything_runs(lra, folder: Path) -> None:
    ran = lra("verify", "--impl", "identity,broken.py")
    (line,) = ran.stderr.splitlines()
    assert "MaskIgnored, Turned" in line and "broken.py:MaskIgnored" in line
    assert ran.returncode == 2 and not ran.stdout


def test_a_class_that_is_no_module_is_a_row_and_capitals_are_read(lra, folder: Path) -> None:
    (folder / "mine.py").write_text("class Mine:\n    def forward(self, q, k, v): return v\n")
    ran = lra("verify", "--impl", "mine.py:Mine,zoo.py:Capitals", "--check", "output,causality")
    assert ran.returncode == 4, ran.stdout + ran.stderr
    assert "Mine: error: " in ran.stdout and "torch.nn.Module" in ran.stdout
    assert "Capitals: 2 held" in ran.stdout


def test_a_wrong_name_in_a_package_is_one_line(lra) -> None:
    ran = lra("verify", "--impl", "torch.nn:MultiHeadAtention")
    (line,) = ran.stderr.splitlines()
    assert "'MultiHeadAtention'" in line and line.endswith("'MultiheadAttention'?")


def test_a_crash_names_the_line_in_the_users_own_file(lra, folder: Path) -> None:
    (folder / "mine.py").write_text(CRASHES)
    ran = lra("verify", "--impl", "mine.py", "--check", "output")
    assert "(mine.py, line 10)" in ran.stdout, ran.stdout
    ran = lra("run", "--impl", "mine.py", *TINY, "--json")
    ends = [r["failure"]["message"] for r in json.loads(ran.stdout) if r["failure"]]
    assert len(ends) == 2 and all(end.endswith(" (mine.py, line 10)") for end in ends), ends
    assert all(end.startswith("RuntimeError: ") for end in ends), ends


def test_another_sequence_can_be_denied_on_the_command_line(lra, folder: Path) -> None:
    (folder / "mine.py").write_text(SELF_ONLY)
    asked = ("verify", "--impl", "mine.py", "--check", "cross,padding_content,refusal")
    ran = lra(*asked)
    assert ran.returncode == 1 and re.search("FAILED +cross", ran.stdout), ran.stdout
    assert "--set cross=false" in ran.stdout
    ran = lra(*asked, "--set", "cross=false")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "mine: 1 not claimed, 2 held" in ran.stdout and "--set cross" not in ran.stdout


def test_the_command_itself_imports_nobody(lra, folder: Path) -> None:
    """Only its children do, and only what was named."""
    for name in ("named", "bystander"):
        package = folder / name
        package.mkdir()
        (package / "__init__.py").write_text(
            "import os\n"
            "with open(os.path.join(os.path.dirname(__file__), 'imported'), 'a') as file:\n"
            "    print(os.getpid(), file=file)\n"
        )
        (package / "inner.py").write_text("from zoo import Keeps\n")
    for verb in (["verify", "--check", "output"], ["run", *TINY, "--dry-run"]):
        ran = lra(*verb, "--impl", "named.inner:Keeps")
        assert ran.returncode == 0, ran.stderr
        importers = (folder / "named" / "imported").read_text().split()
        assert importers and str(os.getpid()) not in importers
    assert not (folder / "bystander" / "imported").exists()


def test_an_installed_entry_point_is_a_name(lra, folder: Path) -> None:
    installed = folder / "theirs-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text(
        "[lra.attention]\ntheirs = zoo:Keeps\nworse = raising:Nobody\ngone = zoo:Keps\n"
    )
    ran = lra("verify", "--impl", "theirs", "--check", "output,padding_content")
    assert ran.returncode == 0 and ran.stdout.startswith("theirs: 2 held"), ran.stdout + ran.stderr
    listed = lra("list", "impls", "--json")
    assert listed.returncode == 0, listed.stderr
    rows = {row["name"]: row for row in json.loads(listed.stdout)}
    assert rows["theirs"]["padding"] == "length" and rows["theirs"]["assumed"]
    assert rows["worse"]["title"].startswith("unavailable: ValueError: ")
    assert "'Keeps'" in rows["gone"]["title"], "its author's mistake is a row"
    assert lra("list", "impls").returncode == 0


def test_a_name_that_two_packages_give_is_a_row_and_no_run(lra, folder: Path) -> None:
    for package in ("acme", "zenith"):
        installed = folder / f"{package}-1.0.dist-info"
        installed.mkdir()
        (installed / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1\n")
        (installed / "entry_points.txt").write_text("[lra.attention]\ntwice = zoo:Keeps\n")
    ran = lra("verify", "--impl", "twice")
    assert ran.returncode == 2
    (line,) = ran.stderr.splitlines()
    assert "'acme'" in line and "'zenith'" in line
    rows = json.loads(lra("list", "impls", "--json").stdout)
    (row,) = [row for row in rows if row["name"] == "twice"]
    assert "'acme'" in row["title"] and "'zenith'" in row["title"]


def test_the_file_that_the_docs_show_keeps_every_law(lra, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "verify.md").read_text()
    shown = next(
        b for b in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "class Mine" in b
    )
    (tmp_path / "mine.py").write_text(shown)
    ran = lra("verify", "--impl", "mine.py:Mine", "--quiet")
    assert ran.returncode == 0 and "failed" not in ran.stdout, ran.stdout + ran.stderr
