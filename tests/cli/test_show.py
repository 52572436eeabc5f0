"""`lra show` on the command line: pictures, lines, records, and mistakes in one line."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from report.sample import quality

from lra.core.protocol import Mechanism
from lra.store import Store

STORE = "results/runs/default"
UNSUPPORTED_IS_NO_FAILURE, USAGE, FAILED_CELLS = 0, 2, 4


def test_each_mechanism_is_a_line_and_a_file_and_the_report_shows_them(lra, tmp_path: Path) -> None:
    ran = lra("show", "--impl", "longformer,lstm", "--length", "16", "--quiet")
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == ""
    first, one, second, other = ran.stdout.splitlines()
    assert re.fullmatch(r"longformer: [\d.]+ % of 16 .* 4 heads, .* [\d.]+", first)
    assert second.startswith("lstm: 100.0 % of 16") and "gradients" in second
    for line, name in ((one, "longformer"), (other, "lstm")):
        assert line == f"  reports/default/show/{name}-16.svg"
        assert f"{name}, 16 positions" in (tmp_path / line.strip()).read_text(encoding="utf-8")
    pairs = {
        r.cell.mechanism.name: r.metrics["pairs"].value for r in Store(tmp_path / STORE).records()
    }
    assert f"{100 * pairs['longformer']:.1f} % of" in first
    assert lra("report").returncode == 0
    folder = tmp_path / "reports/default"
    assert "plots/gallery.svg" in (folder / "report.md").read_text(encoding="utf-8")
    for name in ("longformer", "lstm"):
        page = (folder / f"mechanisms/{name}.html").read_text(encoding="utf-8")
        assert "<svg" in page and "16 positions" in page


def test_a_picture_is_the_same_bytes_from_another_run_and_from_the_record(
    lra, tmp_path: Path
) -> None:
    asked = ("show", "--impl", "bigbird", "--length", "24", "--set", "block=2", "--heads", "2")
    runs = [("a.png", "one"), ("b.png", "one"), ("c.png", "other")]
    told = [lra(*asked, "--out", out, "--store", store) for out, store in runs]
    assert [ran.returncode for ran in told] == [0, 0, 0]
    assert ["[1/1]" in ran.stderr for ran in told] == [True, False, True], "kept in its store"
    pictures = [(tmp_path / out).read_bytes() for out, _ in runs]
    assert pictures[0].startswith(b"\x89PNG")
    assert pictures[0] == pictures[1] == pictures[2]


def test_a_given_input_and_your_own_file(lra, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(10, 8)))
    (tmp_path / "mine.py").write_text(
        "from attention_impls.dense.full import Full\nclass Mine(Full):\n    pass\n"
    )
    ran = lra("show", "--impl", "mine.py", "--input", "x.npy", "--direction", "causal")
    assert ran.returncode == 0, ran.stderr
    assert "mine: 55.0 % of 10" in ran.stdout
    (path,) = (tmp_path / "reports/default/show").iterdir()
    assert re.fullmatch(r"mine-10-causal-[0-9a-f]{8}\.svg", path.name)
    assert f"/{path.name}" in ran.stdout
    (record,) = Store(tmp_path / STORE).records()
    assert record.cell.input and (record.cell.length, record.cell.width) == (10, 8)
    assert "x.npy" not in next((tmp_path / STORE).glob("*.json")).read_text()


def test_another_setting_size_or_input_is_another_file(lra, tmp_path: Path) -> None:
    for seed in (0, 1):
        numbers = np.random.default_rng(seed).normal(size=(16, 64))
        np.save(tmp_path / f"{seed}.npy", numbers)
    for more in (
        ("--length", "16"),
        ("--length", "16", "--set", "block=2"),
        ("--length", "16", "--set", "block=8"),
        ("--length", "16", "--heads", "2"),
        ("--input", "0.npy"),
        ("--input", "1.npy"),
    ):
        assert lra("show", "--impl", "bigbird", *more, "--quiet").returncode == 0
    names = {path.name for path in (tmp_path / "reports/default/show").iterdir()}
    assert len(names) == 6 and "bigbird-16.svg" in names


def test_pictures_are_not_written_over_those_of_another_store(lra, tmp_path: Path) -> None:
    asked = ("show", "--impl", "identity", "--length", "8", "--quiet", "--store")
    for _ in range(2):
        assert lra(*asked, "a/x").returncode == 0
    picture = tmp_path / "reports/x/show/identity-8.svg"
    before = picture.stat().st_mtime_ns
    for command in (asked, ("report", "--store")):
        ran = lra(*command, "b/x")
        (line,) = ran.stderr.splitlines()
        assert (ran.returncode, picture.stat().st_mtime_ns) == (USAGE, before)
        assert "'a/x'" in line and "--out FOLDER" in line
        (tmp_path / "b/x").mkdir(parents=True, exist_ok=True)
    assert not list((tmp_path / "b/x").iterdir())
    told = [lra(*asked, store, "--out", "shared").stderr for store in ("a/x", "b/x", "b/x")]
    assert [len(words.splitlines()) for words in told] == [0, 1, 0]
    assert "'a/x'" in told[1] and "'b/x'" in told[1]


def test_what_cannot_be_drawn_is_a_line_and_the_others_go_on(lra, tmp_path: Path) -> None:
    asked = ("show", "--length", "8", "--direction", "causal", "--impl")
    ran = lra(*asked, "longformer,identity")
    assert ran.returncode == UNSUPPORTED_IS_NO_FAILURE, ran.stderr
    assert "longformer: unsupported: " in ran.stdout
    assert "identity: 12.5 % of 8" in ran.stdout
    (tmp_path / "gone.py").write_text("import a_module_that_is_not_there\n")
    ran = lra(*asked, "gone.py,identity")
    assert ran.returncode == FAILED_CELLS
    assert "gone: error: " in ran.stdout and "a_module_that_is_not_there" in ran.stdout
    assert "reports/default/show/identity-8-causal.svg" in ran.stdout


def test_a_card_is_a_page_of_records_alone(lra, tmp_path: Path) -> None:
    ran = lra("show", "--impl", "performer", "--card")
    assert ran.returncode == 0, ran.stderr
    page = tmp_path / "reports/default/show/performer.html"
    assert str(page.relative_to(tmp_path)) in ran.stdout
    assert "<h1>performer</h1>" in page.read_text(encoding="utf-8")
    other = lra("show", "--impl", "performer", "--card", "--store", "results/runs/x/default")
    assert other.returncode == USAGE, "the folder is another store's"
    for more in (["--length", "16"], ["--set", "features=16"], ["--quiet"]):
        assert lra("show", "--impl", "performer", "--card", *more).returncode == USAGE
    for name in ("peer:hf_bigbird", "performer,peer:hf_bert"):
        ran = lra("show", "--impl", name, "--card")
        assert ran.returncode == USAGE and "public package" in ran.stderr


def test_the_card_of_a_file_without_a_record_names_the_command(lra, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from attention_impls.dense.full import Full\nclass Mine(Full):\n    pass\n"
    )
    ran = lra("show", "--impl", "mine.py:Mine", "--card")
    assert ran.returncode == USAGE and "mine.py:Mine first" in ran.stderr


def test_a_cycle_has_a_card_once_it_was_trained(lra, tmp_path: Path) -> None:
    name = "sdpa+sliding_window"
    ran = lra("show", "--impl", name, "--card")
    assert ran.returncode == USAGE and f"{name} first" in ran.stderr
    assert ran.stderr.count("\n") == 1
    own = Mechanism(name=name, config={"sliding_window": {"left": 3}})
    with Store(tmp_path / STORE).locked() as store:
        store.save(quality(own, "text", 0.7))
    ran = lra("show", "--impl", name, "--card")
    assert ran.returncode == 0, ran.stderr
    (page,) = (tmp_path / "reports/default/show").glob("*.html")
    assert f"<h1>{name}</h1>" in page.read_text(encoding="utf-8")
