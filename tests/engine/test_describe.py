"""Descriptions: what a module declares, from a child process, kept by the hash of its source."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path
from textwrap import dedent
from types import SimpleNamespace

import pytest
from engine_jobs import TOYS

from lra.core import catalogue, loading
from lra.core.cards import AttentionCard, TaskCard
from lra.core.catalogue import Target
from lra.core.errors import UsageError
from lra.engine.plan import describe
from lra.engine.plan.describe import Describer

PLUGIN = """
import msgspec
from lra.core.cards import TaskCard

print("noise that must not come between the answers")

class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    rate: float = 0.5
    sizes: tuple[int, ...] = (1, 2)

class Plugin:
    card = TaskCard(title="plug", source="none", classes=2, vocabulary=3)
    Config = Config
"""


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    file = tmp_path / "plugins" / "plugin.py"
    file.parent.mkdir()
    file.write_text(PLUGIN)
    return file


@pytest.fixture
def describer(tmp_path: Path) -> Describer:
    return Describer(tmp_path / "cache")


def target(file: Path) -> Target:
    return catalogue.find("task", f"{file}:Plugin")


def test_a_module_says_card_and_defaults(describer: Describer, plugin: Path) -> None:
    found = describer.describe(target(plugin))
    assert found.unavailable is None
    assert found.card == TaskCard(title="plug", source="none", classes=2, vocabulary=3)
    assert found.defaults == {"rate": 0.5, "sizes": [1, 2]}


def test_a_task_of_ours_is_described_without_torch(describer: Describer) -> None:
    found = describer.describe(catalogue.find("task", "listops"))
    assert isinstance(found.card, TaskCard) and found.card.classes == 10
    full = found.configure({"max_args": 5}, "here")
    assert full == {**found.defaults, "max_args": 5}


def test_a_mechanism_by_file_is_described(describer: Describer) -> None:
    found = describer.describe(catalogue.find("mechanism", f"{TOYS}:Toy"))
    assert isinstance(found.card, AttentionCard) and found.card.capabilities.padding == "content"
    assert found.configure({"rate": 2}, "here") == {"note": "", "rate": 2.0, "size": 8}
    assert found.configure({}, "here") == found.defaults
    with pytest.raises(UsageError, match=r"^here: .*size"):
        found.configure({"size": 0}, "here")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"rats": 1.0}, "^here: .*'rats'.* 'rate'"),
        ({"rate": "fast"}, "^here: rate = 'fast'.* number"),
        ({"sizes": [1, "x"]}, r"^here: sizes\[1\] = 'x'.* number"),
    ],
)
def test_what_does_not_fit_is_one_line_with_its_place(
    describer: Describer, plugin: Path, changes: dict[str, object], words: str
) -> None:
    with pytest.raises(UsageError, match=words) as refused:
        describer.describe(target(plugin)).configure(changes, "here")
    assert "\n" not in str(refused.value)


def test_a_module_that_hangs_is_unavailable_and_the_next_is_described(
    tmp_path: Path, plugin: Path
) -> None:
    slow = tmp_path / "slow.py"
    slow.write_text("import time\ntime.sleep(60)\n")
    describer = Describer(tmp_path / "cache", patience=0.5)
    first = describer.describe(target(slow)).unavailable
    assert first is not None and "0.5 s" in first
    slow.write_text("")
    assert describer.describe(target(slow)).unavailable == first, "asked again"
    patient = Describer(tmp_path / "cache")
    assert patient.describe(target(plugin)).unavailable is None


def test_an_interrupt_in_a_hanging_import_ends_the_child(
    describer: Describer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = tmp_path / "slow.py"
    slow.write_text(f"import time\ntime.sleep(60)\n{PLUGIN}")

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(describe, "PARTING", 0.2)
    monkeypatch.setattr(describe, "select", SimpleNamespace(select=interrupted))
    with pytest.raises(KeyboardInterrupt):
        describer.describe(target(slow))
    child = describer._child
    assert child is not None and child.poll() is None
    started = time.monotonic()
    describe._end(child)
    assert time.monotonic() - started < 20
    assert child.returncode == -signal.SIGKILL


def test_answers_are_kept_until_the_source_changes(
    tmp_path: Path, plugin: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = Describer(tmp_path / "cache")
    assert first.describe(target(plugin)).configure({"rate": 1.0}, "here")["rate"] == 1.0

    asked: list[object] = []
    second = Describer(tmp_path / "cache")
    ask = second._ask_child
    monkeypatch.setattr(second, "_ask_child", lambda request: asked.append(request) or ask(request))
    found = second.describe(target(plugin))
    assert found.defaults == first.describe(target(plugin)).defaults
    assert found.configure({"rate": 1.0}, "here")["rate"] == 1.0
    plugin.write_text("# a comment\n" + plugin.read_text())
    second.describe(target(plugin))
    assert asked == []
    plugin.write_text(plugin.read_text().replace("0.5", "0.25"))
    assert second.describe(target(plugin)).defaults["rate"] == 0.25
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("module", "changed"), [("sizes", "sizes.py"), ("parts.config", "parts/fields.py")]
)
def test_a_config_from_elsewhere_is_described_anew_when_it_changes(
    tmp_path: Path, plugin: Path, monkeypatch: pytest.MonkeyPatch, module: str, changed: str
) -> None:
    """The config lies in a file beside the plugin, or in a relative import there."""
    folder = plugin.parent
    monkeypatch.syspath_prepend(str(folder))
    head, _, tail = PLUGIN.partition("class Config")
    config, _, rest = tail.partition("class Plugin")
    plugin.write_text(f"{head}from {module} import Config\nclass Plugin{rest}")
    (folder / "parts").mkdir()
    (folder / "parts" / "__init__.py").write_text("")
    (folder / "parts" / "config.py").write_text("from .fields import Config\n")
    (folder / changed).write_text(f"import msgspec\nclass Config{config}")

    found = Describer(tmp_path / "cache").describe(target(plugin))
    assert found.unavailable is None and set(found.defaults) == {"rate", "sizes"}
    (folder / changed).write_text((folder / changed).read_text().replace("rate", "speed"))
    found = Describer(tmp_path / "cache").describe(target(plugin))
    assert set(found.defaults) == {"speed", "sizes"}
    assert found.configure({"speed": 1.0}, "here")["speed"] == 1.0


def test_what_a_card_may_say_is_part_of_what_an_answer_is_kept_by(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def of_names(*paths: Path, **_: object) -> str:
        return " ".join(path.name for path in paths)

    monkeypatch.setattr(describe, "source_hash", of_names)
    assert "cards.py" in describe._own_hash.__wrapped__()


@pytest.mark.parametrize(
    ("held", "changed"),
    [(b'"plug"', b'"p\xffug"'), (b"0.5", b"0.7"), (b'"plug"', b'"plum"'), (b"", b"")],
)
def test_a_cache_that_is_damaged_or_no_folder_only_costs_time(
    tmp_path: Path, plugin: Path, held: bytes, changed: bytes
) -> None:
    first = Describer(tmp_path / "cache").describe(target(plugin))
    (file,) = (tmp_path / "cache" / "descriptions").iterdir()
    content = file.read_bytes()
    assert held in content
    file.write_bytes(content.replace(held, changed) if held else content[:-1])
    (tmp_path / "taken").write_text("a file")
    for place in ("cache", "taken"):
        again = Describer(tmp_path / place).describe(target(plugin))
        assert (again.card, again.defaults) == (first.card, first.defaults)
    assert file.read_bytes() == content


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("import module_that_is_not_there", "'module_that_is_not_there'"),
        ("raise ValueError('broken /a/b/c.txt')", "ValueError: broken c.txt"),
        ("import sys; sys.exit('bye')", "SystemExit: bye"),
        ("import os; os._exit(3)", "exit code 3"),
        ("import os; os.kill(os.getpid(), 9)", "SIGKILL"),
        pytest.param(
            "import os; os.kill(os.getpid(), 40)",
            "signal 40",
            marks=pytest.mark.skipif(sys.platform != "linux", reason="a signal of Linux"),
        ),
        ("def (:", "SyntaxError"),
        ("class Plugin: pass", "no card"),
        ("class Plugin: card = 3", "its card"),
        (PLUGIN.replace("rate: float = 0.5", "rate: float"), "no default for rate"),
    ],
)
def test_a_plugin_that_cannot_be_imported_says_why_and_harms_nobody(
    describer: Describer, plugin: Path, source: str, reason: str
) -> None:
    bad = plugin.with_name("bad.py")
    bad.write_text(source)
    found = describer.describe(target(bad))
    assert found.card is None and found.defaults == {}
    assert found.unavailable is not None and reason in found.unavailable
    assert "\n" not in found.unavailable
    assert str(bad.parent) not in found.unavailable
    with pytest.raises(UsageError, match="task 'Plugin' is unavailable"):
        found.configure({}, "here")
    assert describer.describe(target(plugin)).unavailable is None
    # Mended, it is available: a failure is not kept.
    bad.write_text(PLUGIN)
    assert describer.describe(target(bad)).unavailable is None


def test_a_name_that_a_module_has_not_is_refused(describer: Describer, plugin: Path) -> None:
    plugin.write_text(PLUGIN.replace("class Plugin", "class Plugins"))
    with pytest.raises(UsageError, match=r"^task 'Plugin': plugin\.py: .*'Plugin'.* 'Plugins'\?$"):
        describer.describe(target(plugin))


def test_the_nearest_name_may_come_from_elsewhere_and_a_list_has_the_modules_own(
    tmp_path: Path,
) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from torch.nn import MultiheadAttention\n\n\ndef my_attention(q, k, v):\n    return v\n"
    )
    for name, words in {
        "MultiheadAtention": r"'MultiheadAttention'\?",
        "my_atention": r"'my_attention'\?",
        "Zzz": ": my_attention",
    }.items():
        with pytest.raises(UsageError, match=rf"^mine\.py: .*'{name}'; .*{words}$"):
            loading.load(catalogue.find("mechanism", f"{file}:{name}"))


def test_somebodys_installed_package_is_never_imported_here(
    tmp_path: Path, describer: Describer, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "their_package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "task.py").write_text(PLUGIN)
    monkeypatch.syspath_prepend(str(tmp_path))
    found = describer.describe(catalogue.find("task", "their_package.task:Plugin"))
    assert found.unavailable is None and found.defaults["rate"] == 0.5
    assert "their_package" not in sys.modules
    missing = describer.describe(catalogue.find("task", "no_such_package.task:Plugin"))
    assert missing.unavailable is not None and "no_such_package" in missing.unavailable


def test_the_child_ends_with_its_maker(tmp_path: Path, plugin: Path) -> None:
    describer = Describer(tmp_path / "cache")
    describer.describe(target(plugin))
    child = describer._child
    assert child is not None and child.poll() is None
    del describer
    assert child.poll() is not None


def test_importing_only_what_was_asked_for(plugin: Path) -> None:
    code = dedent(
        """
        import sys
        sys.path.insert(0, sys.argv[1])
        from lra.core.catalogue import find
        from lra.engine.plan.introspect import Request, answer_request
        assert answer_request(Request(find("task", sys.argv[2]))).unavailable is None
        print("torch" in sys.modules)
        """
    )
    root = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", code, root, f"{plugin}:Plugin"], capture_output=True, text=True
    )
    assert done.stdout.split()[-1] == "False", done


def test_a_value_is_not_to_blame_where_the_module_hangs(tmp_path: Path, plugin: Path) -> None:
    cache = tmp_path / "cache"
    assert Describer(cache).describe(target(plugin)).unavailable is None
    known = Describer(cache, patience=0.0).describe(target(plugin))
    with pytest.raises(UsageError, match=r"is unavailable: .* 0 s"):
        known.configure({"size": 2}, "here")
