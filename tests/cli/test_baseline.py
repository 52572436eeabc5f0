"""`lra baseline`: taken of the cheapest mechanism there is, shown, and left alone by what fails."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from lra.core.findings import Finding
from lra.core.records import Failure
from lra.engine.gate import interleave
from lra.engine.gate.baselines import Baselines, Noise
from lra.engine.gate.interleave import stores_of
from lra.engine.gate.revision import HERE, Build
from lra.engine.gate.update import CALIBRATED
from lra.engine.machine.host import machine
from lra.verdict.change import TIME_MARGIN
from lra.verdict.slowdown import PAIRS

from .conftest import Run
from .gate import FLAGS, PLACES, Taken, here
from .test_compare import timed

FAILED_CELLS, INCONCLUSIVE, USAGE = 4, 3, 2
LAST = machine("cpu").name
UPDATE = ("baseline", "update", *FLAGS, *PLACES)
SHOW = ("baseline", "show", "--device", "cpu", "--baselines", "baselines")


@pytest.fixture
def place(tmp_path: Path) -> Baselines:
    return Baselines(tmp_path / "baselines", LAST)


def test_a_baseline_has_what_a_check_looks_at(taken: Taken) -> None:
    assert taken.told.startswith(f"baseline: baselines/{LAST}; ")
    found = Baselines(taken.folder / "baselines", LAST)
    cells = found.figures("identity")
    assert sorted(cells) == [
        "forward 1024 bidirectional", "forward 256 bidirectional", "image, scale check", "laws",
        "train 1024 bidirectional", "train 256 bidirectional",
    ]  # fmt: skip
    assert {own.status for own in cells.values()} == {"ok"}
    assert len(cells["image, scale check"].losses) == 8
    assert cells["train 256 bidirectional"].counts["peak_tensor_bytes"] > 0
    assert "held" in cells["laws"].laws.values() and "failed" not in cells["laws"].laws.values()
    (why,) = found.journal()
    assert why.reason == "the first\none" and why.mechanisms == ("identity",)
    assert found.noise() == {}, "times were not asked for"
    text = "".join(file.read_text() for file in found.path.iterdir())
    assert str(taken.folder) not in text


def test_it_is_shown_with_its_reason(lra: Run, taken: Taken, place: Baselines) -> None:
    here(taken, place.path.parents[1])
    ran = lra(*SHOW)
    assert (ran.returncode, ran.stderr) == (0, "")
    head, why, *rows = ran.stdout.splitlines()
    assert head == f"class {LAST}: 1 mechanism"
    assert re.fullmatch(r"\d{4}-\d\d-\d\d  [0-9a-f]*  identity: the first\\none", why)
    shown = [row for row in rows if row.startswith("identity")]
    assert len(set(shown)) == len(shown) >= 10
    assert re.search(r"^identity +image, scale check +losses +\d\.\d{4} \.\.\. \d\.\d{4} nat$",
                     ran.stdout, re.M)  # fmt: skip
    assert re.search(r"^identity +laws +laws +.*\d+ held", ran.stdout, re.M)
    assert "slowdown allowed" not in ran.stdout
    place.write_noise({"linear train 512": Noise(0.021, 0.034, 12)})
    assert re.search(r"^linear train 512 +2\.1 % +3\.4 % +12$", lra(*SHOW).stdout, re.M)


def test_what_has_no_baseline_says_how_to_take_one(lra: Run, taken: Taken, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for place in ("baselines", "empty"):
        ran = lra(*SHOW[:-1], place)
        assert ran.returncode == INCONCLUSIVE and ran.stdout.count("\n") == 1
        assert LAST in ran.stdout and "baseline update" in ran.stdout
        assert f"'{tmp_path / place}'" in ran.stdout
        assert ("no folder" in ran.stdout) == (place == "baselines")
    here(taken, tmp_path)
    ran = lra(*SHOW, "--impl", "sdpa,identity")
    assert ran.returncode == 0 and "no baseline of sdpa" in ran.stdout
    ran = lra(*SHOW, "--impl", "sdap")
    assert ran.returncode == USAGE and "'sdpa'?" in ran.stderr


@pytest.mark.parametrize("how", ["failed", "law"])
def test_what_failed_or_broke_a_law_changes_nothing(
    lra: Run, taken: Taken, place: Baselines, measured, how: str
) -> None:
    here(taken, place.path.parents[1])
    records = taken.records()
    n = next(n for n, record in enumerate(records) if record.findings)
    bad = {"findings": (Finding(law="causality", verdict="failed"),)}
    if how == "failed":
        bad = {"status": "oom", "failure": Failure(type="MemoryError", message="no room")}
    measured([*records[:n], msgspec.structs.replace(records[n], **bad), *records[n + 1 :]])
    before = {file.name: file.read_bytes() for file in place.path.iterdir()}
    ran = lra(*UPDATE, "--reason", "worse")
    assert ran.returncode == FAILED_CELLS and ran.stdout == ""
    assert ran.stderr.startswith("1 cell ") and "(identity)" in ran.stderr
    assert {file.name: file.read_bytes() for file in place.path.iterdir()} == before


def test_an_update_adds_to_the_journal_and_keeps_other_mechanisms(
    lra: Run, taken: Taken, place: Baselines, measured
) -> None:
    here(taken, place.path.parents[1])
    (place.path / "other.json").write_bytes((place.path / "identity.json").read_bytes())
    measured(taken.records())
    assert lra(*UPDATE, "--reason", "again").returncode == 0
    assert [why.reason for why in place.journal()] == ["the first\none", "again"]
    assert place.names() == ["identity", "other"]
    assert json.loads((place.path / "identity.json").read_text()).keys() == (
        place.figures("identity").keys()
    )


def test_an_update_keeps_how_the_times_of_this_build_repeat(
    lra: Run, place: Baselines, measured, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[Sequence[Build], Sequence[str], int]] = []

    def in_turns(
        sides: Sequence[Build],
        mechanisms: Sequence[str],
        *,
        turns: range,
        folder: Path,
        **_: object,
    ) -> None:
        asked.append((sides, mechanisms, len(turns)))
        first, second = stores_of(folder)
        with first.locked(), second.locked():
            for name in mechanisms:
                noise = 0.02 if name == "sdpa" else 0.01
                for record in timed(name, *[1.0] * len(turns)):
                    first.save(record)
                for record in timed(name, *(1 + noise * (-1) ** turn for turn in turns)):
                    second.save(record)

    measured([])
    monkeypatch.setattr(interleave, "time_interleaved", in_turns)
    place.write_noise({"full train 512 heads 4 x 64": Noise(0.5, 0.9, 12)})
    everything = [flag for flag in UPDATE if flag != "--deterministic"]
    assert lra(*everything, "--reason", "calibrated", "--quiet").returncode == 0
    assert asked == [((HERE, HERE), CALIBRATED, PAIRS)]
    noise = place.noise()
    assert noise.keys() == {f"{name} train 512 heads 4 x 64" for name in CALIBRATED}
    for name, one in noise.items():
        spread = 0.0209 if name.startswith("sdpa") else 0.0104
        assert one == Noise(pytest.approx(spread, abs=1e-4), TIME_MARGIN, PAIRS)
    # Where times are not asked for, what is known of them stays.
    assert lra(*UPDATE, "--reason", "again", "--quiet").returncode == 0
    assert place.noise() == noise and len(asked) == 1
