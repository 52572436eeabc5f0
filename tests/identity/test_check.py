"""Decisions, the lock and the journal of `lra identity`, without running a case."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from graphlib import TopologicalSorter
from pathlib import Path

import msgspec
import pytest

from lra.core import versions
from lra.core.errors import LraError
from lra.engine.gate.revision import HOME
from lra.identity import lock
from lra.identity.audit import draw_records
from lra.identity.calls import SMALL
from lra.identity.cases import TRAININGS, cases
from lra.identity.check import Check, decide, digest_of, hashes
from lra.identity.lock import Accepted, Lock, code_of
from lra.identity.sources import changed_units, required_cases, units
from tests.identity.toy import FILE, SOURCE, answer


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        ("", "", set()),
        ('"""Mix."""', '"""Mix well."""', set()),
        ("x * HALF", "(x\n            * HALF)  # the same", set()),
        ("(self, x: int) -> int", "(self, x)", set()),
        ("x * HALF", "x / HALF", {"Mixer.mix"}),
        ("TILE = 64", "TILE = 32", {"Mixer.mix"}),
        ("width = 3", "width = 4", {"Mixer.decode"}),
        ("def helper(x)", "def assist(x)", set()),
        ("def helper(x):\n    return x", "def helper(x):\n    return -x", {"helper"}),
        ("def decode(self, x: int) -> int:\n        return x + self.width\n", "", set()),
    ],
)
def test_functions_that_an_edit_touches(
    old: str, new: str, changed: set[str], tree: Callable[[str], Path]
) -> None:
    before = hashes(units(tree(SOURCE)))
    after = units(tree(SOURCE.replace(old, new, 1)))
    found = required_cases(changed_units(before, after), after)
    assert {name.partition(":")[2] for name in found} == changed
    assert all(functions == {name} for name, functions in found.items())


def test_a_name_that_only_others_read_is_seen_by_any_of_them(tree: Callable[[str], Path]) -> None:
    root = tree("WIDTH = 3\n")
    (root / "lra/training/loop.py").write_text("def a():\n    return WIDTH\n\nb = WIDTH\n")
    before = hashes(units(root))
    after = units(tree("WIDTH = 4\n"))
    found = required_cases(changed_units(before, after), after)
    assert found == {f"{FILE}:WIDTH": {"lra/training/loop.py:a"}}


def test_a_name_that_others_import_wants_each_of_its_readers(tree: Callable[[str], Path]) -> None:
    root = tree("WIDTH = 3\n\ndef own():\n    return WIDTH\n")
    text = "from lra.training.step import WIDTH\n\ndef a():\n    return WIDTH\n"
    (root / "lra/training/loop.py").write_text(text)
    (root / "lra/training/more.py").write_text("def b(x):\n    return x.WIDTH\n")
    before = hashes(units(root))
    after = units(tree("WIDTH = 4\n\ndef own():\n    return WIDTH\n"))
    readers = {f"{FILE}:own", "lra/training/loop.py:a"}
    assert required_cases(changed_units(before, after), after) == {name: {name} for name in readers}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("from torch import sin\n", "from torch import cos as sin\n"),
        ("from torch import sin\n", "from numpy import sin\n"),
        ("import torch\n", "import numpy as torch\n"),
        ("if FAST:\n", "if not FAST:\n"),
        ("    def helper(x):\n        return x\n", "    def helper(x):\n        return -x\n"),
        ("def solve(a):\n    return a\n", "def solve(a):\n    return -a\n"),
    ],
)
def test_edits_outside_of_functions_ask_for_those_that_read_them(
    old: str, new: str, tree: Callable[[str], Path]
) -> None:
    text = """
import torch
from torch import sin

FAST = torch.cuda
if FAST:
    def helper(x):
        return x

def solve(a):
    return a

def use(x):
    return solve(sin(helper(x)) * FAST)
"""
    before = hashes(units(tree(text)))
    after = units(tree(text.replace(old, new)))
    found = required_cases(changed_units(before, after), after).keys()
    assert found and found <= {f"{FILE}:{name}" for name in ("use", "helper", "solve")}


def test_an_import_is_followed_by_another_name(tree: Callable[[str], Path]) -> None:
    root = tree("WIDTH = 3\n")
    (root / "lra/training/__init__.py").write_text("from lra.training.step import WIDTH as W\n")
    text = "from lra.training import W\n\ndef a():\n    return W\n"
    (root / "lra/training/loop.py").write_text(text)
    before = hashes(units(root))
    after = units(tree("WIDTH = 4\n"))
    assert required_cases(changed_units(before, after), after).keys() == {"lra/training/loop.py:a"}


def test_what_is_gone_is_a_change_too(tree: Callable[[str], Path]) -> None:
    before = hashes(units(tree(SOURCE)))
    assert hashes(units(tree(SOURCE.replace("def helper(x):\n    return x\n", "")))) != before


def test_bodies_exchanged_are_two_changes(tree: Callable[[str], Path]) -> None:
    before = hashes(units(tree("def a():\n    return 1\n\ndef b():\n    return 2\n")))
    after = units(tree("def a():\n    return 2\n\ndef b():\n    return 1\n"))
    assert changed_units(before, after) == {f"{FILE}:a", f"{FILE}:b"}


TRAIN, DROPOUT = ("train",), ("train", "train/dropout")


@pytest.mark.parametrize(
    ("now", "verdict", "bumps"),
    [
        ({"train": "a", "train/dropout": "a"}, "kept", set()),
        ({"train": "b", "train/dropout": "b"}, "changed", {"train"}),
        ({"train": "a", "train/dropout": "b"}, "changed", {"train/dropout"}),
        ({"train": "a", "train/dropout": "a", "train, new": "b"}, "kept", set()),
    ],
)
def test_no_more_is_bumped_than_what_moved_by_itself(
    now: dict[str, str], verdict: str, bumps: set[str]
) -> None:
    uses = {"train": (), "train/dropout": TRAIN, "train, new": ()}
    before = {case: digest_of(answer(case, uses=uses[case])) for case in ("train", "train/dropout")}
    answers = [answer(case, bits, uses[case]) for case, bits in now.items()]
    found = decide(Lock(), {}, answers, before)
    assert (found.verdict, set(found.bumps)) == (verdict, bumps)


def test_a_bumped_case_demands_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    before = {"train": digest_of(answer("train"))}
    monkeypatch.setattr(versions, "_bumped", lambda: {"train": 2})
    assert decide(Lock(), {}, [answer("train", "b")], before).verdict == "kept"


def test_a_feature_excuses_no_more_than_edits_that_its_own_cases_meet(
    tree: Callable[[str], Path],
) -> None:
    """A mechanism and the stopwatch change together: both want a bump."""
    locked = Lock(sources=hashes(units(tree(SOURCE))))
    mechanism = SOURCE.replace("x * HALF", "x / HALF")
    both = mechanism.replace("return x\n", "return -x\n")
    uses = ("mechanism/linear",)
    before = {
        "mechanism/linear": digest_of(answer("mechanism/linear")),
        "time": digest_of(answer("time", "a", uses)),
    }
    for text, wanted in ((mechanism, {*uses}), (both, {*uses, "time"})):
        answers = [
            answer("mechanism/linear", "b", (), "Mixer.mix"),
            answer("time", "b", uses, "Mixer.mix", "helper"),
        ]
        assert set(decide(locked, units(tree(text)), answers, before).bumps) == wanted


def test_an_edit_that_no_function_tells_of_excuses_nothing(tree: Callable[[str], Path]) -> None:
    bases = SOURCE.replace("class Mixer:", "class Mixer(dict):")
    locked = Lock(sources=hashes(units(tree(SOURCE))))
    now = units(tree(bases.replace("x * HALF", "x / HALF")))
    uses = ("mechanism/linear",)
    before = {
        "mechanism/linear": digest_of(answer("mechanism/linear")),
        "time": digest_of(answer("time", "a", uses)),
    }
    answers = [
        answer("mechanism/linear", "b", (), "Mixer.mix"),
        answer("time", "b", uses, "Mixer.mix"),
    ]
    assert set(decide(locked, now, answers, before).bumps) == {"mechanism/linear", "time"}


def test_a_bump_of_what_did_not_move_excuses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    uses = ("mechanism/sdpa",)
    before = {"mechanism/sdpa": digest_of(answer("mechanism/sdpa")),
              "train": digest_of(answer("train", "a", uses))}  # fmt: skip
    monkeypatch.setattr(versions, "_bumped", lambda: {"mechanism/sdpa": 2})
    answers = [answer("mechanism/sdpa"), answer("train", "b", uses)]
    assert set(decide(Lock(), {}, answers, before).bumps) == {"train"}


def test_a_lock_knows_all_cases_of_a_toolchain_or_none(
    tree: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    lock.write(tree(SOURCE), Lock(digests={"elsewhere": {"train": "a"}}))
    one = Check(tree(SOURCE))
    one.answers = [answer("train", "b")]
    one.write()
    assert set(one.lock.digests) == {"elsewhere", lock.toolchain()}
    monkeypatch.setattr(versions, "_bumped", lambda: {"train": 2})
    one.renew()
    one.write()
    assert one.lock.digests == {lock.toolchain(): {"train": "b train=2"}}


def test_a_changed_function_is_entered_or_named(tree: Callable[[str], Path]) -> None:
    locked = Lock(sources=hashes(units(tree(SOURCE))))
    now = units(tree(SOURCE.replace("return x\n", "return x + 0\n")))
    before = {"train": digest_of(answer("train"))}
    name = f"{FILE}:helper"
    for entered, unseen in ((("helper",), ()), (("Mixer.mix",), (name,))):
        found = decide(locked, now, [answer("train", "a", (), *entered)], before)
        assert (found.verdict, found.unseen) == ("unseen" if unseen else "kept", unseen)
    # A case that nothing is known of before proves nothing.
    both = [answer("train"), answer("train, new", "a", (), "helper")]
    assert decide(locked, now, both, before).unseen == (name,)
    accepted = msgspec.structs.replace(
        locked, accepted={name: Accepted("for a GPU", code_of(name, now))}
    )
    assert decide(accepted, now, [answer("train")], before).verdict == "kept"
    # For one edit, not for the next; and whatever is locked in between.
    later = msgspec.structs.replace(accepted, sources=accepted.sources | {"more": "1"})
    assert decide(later, now, [answer("train")], before).verdict == "kept"
    other = units(tree(SOURCE.replace("return x\n", "return x * 7\n")))
    assert decide(accepted, other, [answer("train")], before).unseen == (name,)


def test_what_is_new_is_seen_by_a_new_case(tree: Callable[[str], Path]) -> None:
    locked = Lock(sources=hashes(units(tree(SOURCE))))
    now = units(tree(SOURCE + "\ndef more(x):\n    return 3 * x\n"))
    for entered, unseen in ((("more",), ()), ((), (f"{FILE}:more",))):
        assert decide(locked, now, [answer("train", "a", (), *entered)], {}).unseen == unseen


OVERRIDE = """
class Alone:
    def total(self, x):
        return x

class Joined(Alone):
    def total(self, x):
        return 2 * x

def use(ranks):
    return ranks.total(1)
"""


def test_an_override_that_no_case_entered_is_missed_when_it_is_gone(
    tree: Callable[[str], Path],
) -> None:
    name, before = f"{FILE}:Joined.total", hashes(units(tree(OVERRIDE)))
    gone = units(
        tree(OVERRIDE.replace("    def total(self, x):\n        return 2 * x", "    pass"))
    )
    for blind, unseen in (([name], (name,)), ([], ())):
        found = decide(Lock(sources=before, blind=blind), gone, [answer("train")], {})
        assert found.unseen == unseen


def test_an_override_that_moves_to_another_class_is_missed(tree: Callable[[str], Path]) -> None:
    name, before = f"{FILE}:Joined.total", hashes(units(tree(OVERRIDE)))
    moved = OVERRIDE.replace(
        "class Joined(Alone):\n", "class Joined(Alone):\n    pass\n\nclass Spare:\n"
    )
    found = decide(Lock(sources=before, blind=[name]), units(tree(moved)), [answer("train")], {})
    assert {name, f"{FILE}:Spare.total"} <= set(found.unseen)


def test_a_case_that_is_gone_is_missed() -> None:
    before = {case: digest_of(answer(case)) for case in ("train", "time")}
    assert decide(Lock(), {}, [answer("time")], before).unseen == ("train",)


@pytest.mark.parametrize(
    "edit",
    [
        ("TILE = 64", "from math import e as TILE"),
        ("class Mixer:", "@final\nclass Mixer:"),
        ("class Mixer:", "class Mixer(Base, frozen=True):"),
    ],
)
def test_no_edit_of_code_is_untouched(edit: tuple[str, str], tree: Callable[[str], Path]) -> None:
    before = hashes(units(tree(SOURCE)))
    assert hashes(units(tree(SOURCE.replace(*edit)))) != before


def test_each_option_of_a_training_is_told_by_its_own_case() -> None:
    about = {case.name: case.about for case in cases()}
    names = [f"train/{name}" for name in TRAININGS if name]
    assert [about[name] for name in names] == names


def test_short_inputs_take_the_course_of_long_ones_wherever_sizes_decide() -> None:
    """Sizes that are renamed, and new ones, want to be in `SMALL`."""
    found = {name for name, unit in units(HOME).items() if not unit.origin and "impls" in name}
    assert {name for name in found if name.partition(":")[2] in SMALL} == {
        f"attention_impls/{place}"
        for place in (
            "dense/_streamed.py:TILE", "kernel/_causal.py:CHUNK",
            "kernel/_chunks.py:CHUNK", "kernel/_tiles.py:TILE",
            "learned/_rounds.py:TILE", "learned/reformer.py:LONG", "pattern/_blocked.py:TILE",
            "pattern/_parts.py:DENSE_ADVANTAGE", "pattern/_parts.py:TILE",
            "pattern/_parts.py:TILE_COST", "pattern/sparse_strided.py:CHUNK",
        )
    }  # fmt: skip


def test_no_case_uses_a_feature_that_uses_its_own() -> None:
    """Or each would excuse the other, and nobody would be asked for a bump."""
    uses: dict[str, set[str]] = defaultdict(set)
    for case in cases():
        uses[case.about].update(case.uses)
    list(TopologicalSorter(uses).static_order())


KNOWN = cases()


@pytest.mark.parametrize("feature", sorted({case.about for case in KNOWN}))
def test_a_feature_that_moves_all_its_users_is_bumped_alone(feature: str) -> None:
    before = {case.name: digest_of(answer(case.name)) for case in KNOWN}
    answers = [
        msgspec.structs.replace(
            answer(case.name, "b" if feature in (case.about, *case.uses) else "a", case.uses),
            about=case.about,
        )
        for case in KNOWN
    ]
    assert set(decide(Lock(), {}, answers, before).bumps) == {feature}


@pytest.mark.parametrize("numbers", [(3,), (2, 2), (2, 4), (1,)])
def test_a_journal_out_of_order_is_one_line(numbers: tuple[int, ...], tmp_path: Path) -> None:
    file = tmp_path / "versions.json"
    bumps = [
        versions.Bump(feature="train", version=n, date="2026-11-27", cases=(), reason="why")
        for n in numbers
    ]
    file.write_bytes(msgspec.json.encode(bumps))
    with pytest.raises(LraError, match="in order"):
        versions.journal(file)


def test_a_bump_that_the_lock_knows_and_the_journal_lacks(tree: Callable[[str], Path]) -> None:
    root = tree(SOURCE)
    lock.write(root, Lock(sources=hashes(units(root)), versions={"train": 2}))
    with pytest.raises(LraError, match="train to 2"):
        _ = Check(root).is_untouched


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (None, "git checkout"),
        (b'{"schema": 1, "sour', "git checkout"),
        (b'{"schema": 2, "news": []}', "newer"),
        (b"[]", "git checkout"),
        (b'{"schema": 1, "digests": {"here": ["a"]}}', "git checkout"),
    ],
)
def test_a_lock_that_cannot_be_read_is_one_line(
    data: bytes | None, words: str, tmp_path: Path
) -> None:
    if data is not None:
        (tmp_path / lock.FILE).parent.mkdir(parents=True)
        (tmp_path / lock.FILE).write_bytes(data)
    with pytest.raises(LraError, match=words) as caught:
        lock.read(tmp_path)
    assert "\n" not in str(caught.value)


def test_a_lock_is_read_as_it_was_written(tmp_path: Path) -> None:
    written = Lock(
        sources={"a": "1"}, digests={"here": {"train": "a b"}}, accepted={"a": Accepted("r", "s")}
    )
    lock.write(tmp_path, written)
    assert lock.read(tmp_path) == written
    lock.write(tmp_path, written)
    assert [file.name for file in (tmp_path / lock.FILE).parent.iterdir()] == [lock.FILE.name]


def test_no_record_to_audit_is_one_line() -> None:
    with pytest.raises(LraError, match="no record can be measured again here"):
        draw_records([], 10, seed=0)
