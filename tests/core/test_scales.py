"""Every shipped scale and suite reads; a wrong key, value or name is one line with its place."""

from pathlib import Path

import pytest

from lra.core import catalogue, peers, scales
from lra.core.errors import UsageError

OURS = set(catalogue.names("mechanism"))


@pytest.mark.parametrize("name", scales.names("scales"))
def test_every_scale_reads(name):
    scale = scales.load_scale(name)
    assert scale.name == name
    assert set(scale.tasks) <= set(catalogue.names("task")) and set(scale.mechanisms) <= OURS
    for task in scale.tasks:
        assert scale.model_spec(task).layers >= 1
        assert scale.train_spec(task).steps >= 1


@pytest.mark.parametrize("name", scales.names("suites"))
def test_every_suite_reads(name):
    suite, known = scales.load_suite(name), scales.names("scales")
    for block in suite.quality:
        assert set(block.tasks) <= set(scales.load_scale(block.scale).tasks)
    for timed in suite.efficiency:
        assert timed.scale in known and set(timed.beside) <= OURS
    for pair in suite.pairs:
        assert pair.ours in OURS and peers.read(pair.theirs).counterpart == pair.ours
    for compared in suite.error:
        assert compared.scale in known and set(compared.budgets) <= OURS


@pytest.fixture
def write(tmp_path):
    def write(text):
        (tmp_path / "mine.toml").write_text(text)
        return str(tmp_path / "mine.toml")

    return write


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


def test_a_suite_may_lie_beside_its_scale_wherever_it_is_read_from(tmp_path, write, monkeypatch):
    write(SCALE)
    block = '[[quality]]\nscale = "mine.toml"\ntasks = ["text"]\n'
    (tmp_path / "suite.toml").write_text(f"title = 'mine'\n{block}{block}")
    for place, name in ((Path(__file__).parent, tmp_path / "suite.toml"), (tmp_path, "suite.toml")):
        monkeypatch.chdir(place)
        for block in scales.load_suite(str(name)).quality:
            assert scales.load_scale(block.scale).name == "mine"


def test_a_task_overrides_and_a_default_catches_the_rest(write):
    scale = scales.load_scale(write(SCALE))
    assert scale.model_spec("text").layers == 3
    assert scale.train_spec("text").steps == 9
    with pytest.raises(UsageError, match=r"'image'; .*text"):
        scale.task("image")
    more = "[default]\nlength = 4\nrows = {train = 1, validation = 1, test = 1}\n"
    assert scales.load_scale(write(SCALE + more)).train_spec("image").steps == 3


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ("layers = 1", "layer = 1", "layer"),
        ("width = 8", "width = 'wide'", "width"),
        ("steps = 9", "steps = 0", "steps"),
        ("heads = 2", "heads = 2\nattention_dropout = 1.0", "attention_dropout.*< 1.0"),
        ("[tasks.text]", "[task.text]", "task"),
        ("title =", "title", r"mine.toml' is not valid TOML: .*\(at line 2, "),
        ("steps = 9", f"steps = {10**20}", f"steps = {10**20} must be a whole number <= "),
        ("tasks", "task", "there is no key 'task'; did you mean 'tasks'"),
        ("length = 8", "lenght = 8", "'lenght' in tasks.text; did you mean 'length'"),
        ("test = 1", "tets = 1", "'tets' in tasks.text.rows; did you mean 'test'"),
        ("layers = ", "layer = ", "text': there is no key 'layer'; did you mean 'layers'"),
        ("length = 8\n", "", "the key 'length' is missing in tasks.text"),
        ('title = "mine"', "", "the key 'title' is missing"),
        ("[tasks.text]", "rates = [1.0, -inf]\n[tasks.text]", r"training.rates\[1\] = -inf"),
        ("steps = 9", "steps = 9\nseconds = nan", "tasks.text.training.seconds = nan must be "),
    ],
)
def test_a_mistake_in_a_scale_names_its_place(write, before, after, says):
    with pytest.raises(UsageError, match=says) as caught:
        scale = scales.load_scale(write(SCALE.replace(before, after)))
        scale.model_spec("text")
        scale.train_spec("text")
    assert "\n" not in str(caught.value) and "mine" in str(caught.value)


SIZES = "lengths = [8]\nheads = [1]\nhead_widths = [4]\n"
MANY = 10**12
TOO_MANY = rf"s = {MANY} must be a whole number <= 10000"
TIMED = "[[efficiency]]\nscale = 'mini'\n"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (f"[[quality]]\nscale = 'mini'\ntasks = ['text']\nseeds = {MANY}", TOO_MANY),
        (f"[[error]]\nscale = 'mini'\n{SIZES}seeds = {MANY}", TOO_MANY),
        (f"{TIMED}modes = ['train']\n{SIZES}replicates = {MANY}", TOO_MANY),
        (f"{TIMED}{TIMED}seconds = nan", r"efficiency\[1\].seconds = nan must be finite"),
        (f"{TIMED}lenghts = [8]", r"'lenghts' in efficiency\[0\]; did you mean 'lengths'"),
        (f"{TIMED}xyzzy = 1", r"'xyzzy' in efficiency\[0\]; it knows scale, device, lengths, "),
        (f"{TIMED}lengths = [8]\nmodes = ['train']", r"'heads' is missing in efficiency\[0\]"),
    ],
)
def test_a_mistake_in_a_suite_names_its_place(write, text, says):
    with pytest.raises(UsageError, match=rf"^suite file 'mine.toml': .*{says}"):
        scales.load_suite(write(f"title = 'mine'\n{text}\n"))


@pytest.mark.parametrize(
    ("reference", "says"),
    [
        ("folder", "suite 'folder' is a folder; name a TOML file in it"),
        ("folder.toml", "suite 'folder.toml' is a folder; name a TOML file in it"),
        ("bare", "suite file 'bare' does not end in .toml; rename it to 'bare.toml'"),
        ("other", "unknown suite 'other'; did you mean 'other.toml'?"),
        ("none.toml", "no suite file 'none.toml'; check the path"),
        ("latin.toml", "suite file 'latin.toml' is not UTF-8 (at line 2); save it as UTF-8"),
    ],
)
def test_a_reference_that_is_no_suite_file_says_why(tmp_path, monkeypatch, reference, says):
    monkeypatch.chdir(tmp_path)
    for folder in ("folder", "folder.toml"):
        (tmp_path / folder).mkdir()
    for file in ("bare", "other.toml"):
        (tmp_path / file).write_text("title = 'mine'")
    (tmp_path / "latin.toml").write_bytes(b"title = 'x'\nname = '\xff'\n")
    with pytest.raises(UsageError) as caught:
        scales.load_suite(reference)
    assert str(caught.value) == says
