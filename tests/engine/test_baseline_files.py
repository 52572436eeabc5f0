"""Baselines on disk: what is written is read back, and is pleasant to review."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lra.core.errors import StoreError
from lra.engine.gate.baselines import Baselines, Noise, Reason
from lra.verdict.baseline import Figures

CLASS = "example-cpu-2c"
FIRST = Reason("2026-11-20", "abc", ("linear",), "the first")
SECOND = Reason("2026-11-21", "def", ("linear", "sdpa"), "fewer bytes")


def figures(**own: object) -> Figures:
    return Figures(**{"asked": "a", **own})  # type: ignore[arg-type]


FULL = figures(
    counts={"operations": 2.0, "parameters": 1.0},
    losses=[1.5, 0.1],
    accuracies={"0": 0.5},
    laws={"causality": "held"},
    status="unsupported",
)


@pytest.fixture
def place(tmp_path: Path) -> Baselines:
    return Baselines(tmp_path / "baselines", CLASS)


def test_what_is_written_is_read_back(place: Baselines) -> None:
    assert not place.exists() and place.names() == [] and not place.path.exists()
    assert (place.figures("linear"), place.noise(), place.journal()) == ({}, {}, [])
    noise = {"linear train 512": Noise(spread=0.1, allowed=0.04, pairs=12)}
    place.write({"linear": {"laws": FULL}, "sdpa": {"train 1": figures()}}, FIRST)
    place.write_noise(noise)
    again = Baselines(place.path.parent, CLASS)
    assert again.exists() and again.names() == ["linear", "sdpa"]
    assert again.figures("linear") == {"laws": FULL}
    assert (again.noise(), again.journal()) == (noise, [FIRST])
    assert not Baselines(place.path.parent, "another-cpu-2c").exists()


def test_cells_are_replaced_one_by_one_and_the_journal_grows(place: Baselines) -> None:
    place.write({"linear": {"one": figures(), "other": FULL}}, FIRST)
    changed = figures(asked="b")
    place.write({"linear": {"one": changed}}, SECOND)
    assert place.figures("linear") == {"one": changed, "other": FULL}
    assert place.journal() == [FIRST, SECOND]


def test_noise_is_replaced_as_a_whole_and_kept_where_times_were_not_taken(
    place: Baselines,
) -> None:
    old, new = {"gone": Noise(9.0, 9.0, 12)}, {"linear": Noise(0.1, 0.04, 12)}
    place.write({}, FIRST)
    place.write_noise(old)
    place.write({}, SECOND)
    assert place.noise() == old
    # The widest margin of all counts for what was not calibrated itself.
    place.write_noise(new)
    assert place.noise() == new


def test_files_are_sorted_and_indented_a_line_a_figure(place: Baselines) -> None:
    place.write({"linear": {"b": FULL, "a": figures()}}, FIRST)
    text = (place.path / "linear.json").read_text()
    plain = json.loads(text)
    assert text == json.dumps(plain, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    assert list(plain) == ["a", "b"]
    assert '   "operations": 2.0,\n   "parameters": 1.0\n' in text
    assert plain["a"] == {"asked": "a"}


def test_names_of_other_peoples_mechanisms_are_files_everywhere(place: Baselines) -> None:
    for name in ("peer:flash", "a/b", "50%"):
        place.write({name: {"laws": FULL}}, FIRST)
        assert place.figures(name) == {"laws": FULL}
    assert place.names() == ["50%", "a/b", "peer:flash"]
    assert all(
        set(file.name) <= set("abcdefhijlnorspu%0123459AF._") for file in place.path.iterdir()
    )


@pytest.mark.parametrize("torn", ['{"laws": {"asked"', '{"laws": 3}', "\xff", '{"laws": {"x": 1}}'])
def test_a_file_that_cannot_be_read_is_one_line_that_names_it(place: Baselines, torn: str) -> None:
    place.write({"linear": {"laws": FULL}}, FIRST)
    (place.path / "linear.json").write_bytes(torn.encode("latin-1"))
    with pytest.raises(StoreError, match=r"linear\.json'") as error:
        place.figures("linear")
    assert "\n" not in str(error.value)
    (place.path / "_journal.json").write_text("[")
    with pytest.raises(StoreError, match=r"_journal\.json'"):
        place.exists()


@pytest.mark.parametrize(
    "wrong",
    [{"accuracies": {"0": 7.5}}, {"accuracies": {"0": -0.1}}, {"counts": {"operations": -1}},
     {"losses": [-0.5]}, {"losses": [float("inf")]}],
    ids=str,
)  # fmt: skip
def test_a_figure_that_cannot_be_is_one_line_that_names_its_file(
    place: Baselines, wrong: dict[str, object]
) -> None:
    place.write({"linear": {"laws": FULL}}, FIRST)
    file = place.path / "linear.json"
    told = json.loads(file.read_text())
    told["laws"] |= wrong
    file.write_text(json.dumps(told))
    with pytest.raises(StoreError, match=r"linear\.json' cannot be read: .*; restore it"):
        place.figures("linear")


@pytest.mark.parametrize("wrong", [{"spread": -0.1}, {"allowed": -0.04}, {"pairs": 0}], ids=str)
def test_a_noise_that_cannot_be_is_one_line(place: Baselines, wrong: dict[str, float]) -> None:
    place.write_noise({"linear": Noise(**{"spread": 0.1, "allowed": 0.04, "pairs": 12, **wrong})})
    with pytest.raises(StoreError, match=r"_noise\.json'"):
        place.noise()


def test_a_folder_that_cannot_be_written_is_one_line_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    place = Baselines(tmp_path / "file", CLASS)
    with pytest.raises(StoreError, match=r"cannot write .*file.* not a directory"):
        place.write({}, FIRST)
    with pytest.raises(StoreError, match="cannot be read"):
        place.exists()
