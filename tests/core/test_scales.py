"""Every shipped scale and suite reads; a wrong key, value or name is one line with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from lra.core import catalogue, peers, scales
from lra.core.errors import UsageError


@pytest.mark.parametrize("name", scales.names("scales"))
def test_every_scale_reads(name: str) -> None:
    scale = scales.load_scale(name)
    assert scale.name == name
    for task in scale.tasks:
        assert task in catalogue.names("task")
        assert scale.model_spec(task).layers >= 1
        assert scale.train_spec(task).steps >= 1
    assert set(scale.mechanisms) <= set(catalogue.names("mechanism"))


@pytest.mark.parametrize("name", scales.names("suites"))
def test_every_suite_reads(name: str) -> None:
    suite = scales.load_suite(name)
    for block in suite.quality:
        assert set(block.tasks) <= set(scales.load_scale(block.scale).tasks)
    for timed in suite.efficiency:
        assert timed.scale in scales.names("scales")
        assert set(timed.beside) <= set(catalogue.names("mechanism"))
    for pair in suite.pairs:
        assert pair.ours in catalogue.names("mechanism")
        assert peers.read(pair.theirs).counterpart == pair.ours
    for compared in suite.error:
        assert compared.scale in scales.names("scales")
        assert set(compared.budgets) <= set(catalogue.names("mechanism"))


def write(folder: Path, text: str) -> str:
    file = folder / "mine.toml"
    file.write_text(text)
    return str(file)


SCALE = """
title = "mine"
[model]
layers = 1
width = 8
qkv_width = 8
heads = 2
mlp_width = 8
[training]
steps = 3
batch = 2
learning_rate = 1.0
evaluate_every = 1
[tasks.text]
length = 8
rows = {train = 1, validation = 1, test = 1}
[tasks.text.model]
layers = 3
[tasks.text.training]
steps = 9
"""


def test_a_suite_may_lie_beside_its_scale_wherever_it_is_read_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, SCALE)
    block = '[[quality]]\nscale = "mine.toml"\ntasks = ["text"]\n'
    (tmp_path / "suite.toml").write_text(f"title = 'mine'\n{block}{block}")
    monkeypatch.chdir(Path(__file__).parent)
    for block in scales.load_suite(str(tmp_path / "suite.toml")).quality:
        assert scales.load_scale(block.scale).name == "mine"
    monkeypatch.chdir(tmp_path)
    assert scales.load_scale(scales.load_suite("suite.toml").quality[1].scale).name == "mine"


def test_a_task_overrides_and_a_default_catches_the_rest(tmp_path: Path) -> None:
    scale = scales.load_scale(write(tmp_path, SCALE))
    assert scale.model_spec("text").layers == 3
    assert scale.train_spec("text").steps == 9
    with pytest.raises(UsageError, match="no settings for the task 'image'; it covers text"):
        scale.task("image")
    more = "[default]\nlength = 4\nrows = {train = 1, validation = 1, test = 1}\n"
    assert scales.load_scale(write(tmp_path, SCALE + more)).train_spec("image").steps == 3


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("layers = 1", "layer = 1"), "layer"),
        (("width = 8", "width = 'wide'"), "width"),
        (("steps = 9", "steps = 0"), "steps"),
        (("heads = 2", "heads = 2\nattention_dropout = 1.0"), "attention_dropout.*< 1.0"),
        (("[tasks.text]", "[task.text]"), "task"),
        (("title =", "title"), r"mine.toml' is not valid TOML: .*\(at line 2, .*; mend it there$"),
        (("steps = 9", f"steps = {10**20}"), f"steps = {10**20} must be a whole number <= "),
    ],
)
def test_a_mistake_names_its_place(tmp_path: Path, change: tuple[str, str], told: str) -> None:
    with pytest.raises(UsageError, match=told) as caught:
        scale = scales.load_scale(write(tmp_path, SCALE.replace(*change)))
        scale.model_spec("text")
        scale.train_spec("text")
    assert "\n" not in str(caught.value)


def test_what_is_no_suite_file_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("folder", "folder.toml"):
        (tmp_path / folder).mkdir()
    for file in ("bare", "other.toml"):
        (tmp_path / file).write_text("title = 'mine'")
    (tmp_path / "latin.toml").write_bytes(b"title = 'x'\nname = '\xff'\n")
    for reference, told in {
        "folder": "suite 'folder' is a folder; name a TOML file in it",
        "folder.toml": "suite 'folder.toml' is a folder; name a TOML file in it",
        "bare": "suite file 'bare' does not end in .toml; rename it to 'bare.toml'",
        "other": "unknown suite 'other'; did you mean 'other.toml'?",
        "none.toml": "no suite file 'none.toml'; check the path",
        "latin.toml": "suite file 'latin.toml' is not UTF-8 (at line 2); save it as UTF-8",
    }.items():
        with pytest.raises(UsageError) as caught:
            scales.load_suite(reference)
        assert str(caught.value) == told


def test_a_value_that_is_not_finite_names_its_key(tmp_path: Path) -> None:
    block = "[[efficiency]]\nscale = 'mini'\n"
    with pytest.raises(UsageError) as caught:
        scales.load_suite(write(tmp_path, f"title = 'mine'\n{block}{block}seconds = nan\n"))
    told = str(caught.value)
    assert (
        told == "suite file 'mine.toml': efficiency[1].seconds = nan must be finite; fix the value"
    )
    for before, after, told in (
        ("[tasks.text]", "rates = [1.0, -inf]\n[tasks.text]", "training.rates[1] = -inf must be "),
        ("steps = 9", "steps = 9\nseconds = nan", "tasks.text.training.seconds = nan must be "),
    ):
        with pytest.raises(UsageError) as caught:
            scales.load_scale(write(tmp_path, SCALE.replace(before, after)))
        assert str(caught.value).startswith(f"scale file 'mine.toml': {told}")


@pytest.mark.parametrize(
    "text",
    [
        "[[quality]]\nscale = 'mini'\ntasks = ['text']\nseeds",
        "[[error]]\nscale = 'mini'\nlengths = [8]\nheads = [1]\nhead_widths = [4]\nseeds",
        "[[efficiency]]\nscale = 'mini'\nlengths = [8]\nmodes = ['train']\nheads = [1]\n"
        "head_widths = [4]\nreplicates",
    ],
)
def test_so_many_repeats_are_a_slip(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError, match=f"s = {10**12} must be a whole number <= 10000; fix"):
        scales.load_suite(write(tmp_path, f"title = 'mine'\n{text} = {10**12}\n"))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("lenghts = [8]", "there is no key 'lenghts' in efficiency[0]; did you mean 'lengths'?"),
        (
            "xyzzy = 1",
            "there is no key 'xyzzy' in efficiency[0]; it knows scale, device, lengths, ",
        ),
        ("lengths = [8]\nmodes = ['train']", "the key 'heads' is missing in efficiency[0]; add it"),
    ],
)
def test_a_misspelt_key_of_a_suite_has_its_nearest(tmp_path: Path, text: str, told: str) -> None:
    whole = f"title = 'mine'\n[[efficiency]]\nscale = 'mini'\n{text}\n"
    with pytest.raises(UsageError) as caught:
        scales.load_suite(write(tmp_path, whole))
    assert str(caught.value).startswith(f"suite file 'mine.toml': {told}")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("tasks", "task"), "there is no key 'task'; did you mean 'tasks'?"),
        (
            ("length = 8", "lenght = 8"),
            "there is no key 'lenght' in tasks.text; did you mean 'length'?",
        ),
        (
            ("test = 1", "tets = 1"),
            "there is no key 'tets' in tasks.text.rows; did you mean 'test'?",
        ),
        (("length = 8\n", ""), "the key 'length' is missing in tasks.text; add it"),
        (('title = "mine"', ""), "the key 'title' is missing; add it"),
    ],
)
def test_a_misspelt_key_of_a_scale_has_its_nearest(
    tmp_path: Path, change: tuple[str, str], told: str
) -> None:
    with pytest.raises(UsageError) as caught:
        scales.load_scale(write(tmp_path, SCALE.replace(*change)))
    assert str(caught.value) == f"scale file 'mine.toml': {told}"


def test_a_misspelt_override_has_its_nearest(tmp_path: Path) -> None:
    scale = scales.load_scale(write(tmp_path, SCALE.replace("layers = ", "layer = ")))
    with pytest.raises(UsageError, match="text': there is no key 'layer'; did you mean 'layers'"):
        scale.model_spec("text")
