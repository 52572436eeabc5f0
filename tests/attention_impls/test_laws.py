"""Every registered mechanism keeps every law of the conformance kit.

A new file in the room is tested here without a line of its own. Small blocks make short inputs
cross the borders of tiles, and few of them do; `lra verify` tries more, and blocks as they are. As
the gate verifies every mechanism, all laws are tried here by default on those that stand for others
(`code_paths.py`), and on each other one the laws that tiles break first and those that only its own
code can break.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch
from code_paths import by_representatives, others

from attention_impls.contract import Layer, MechanismConfig, Mixer
from lra.core.cards import AttentionCard
from lra.core.catalogue import find, names
from lra.core.loading import load
from lra.verify import kit, rotated_sizes
from lra.verify.law import Law
from lra.verify.subject import Subject

AS_THEY_ARE = (
    "another_process",
    "memory_growth",
    "operation_growth",
    "time_growth",
    "convergence",
    "threads",
)
"""Laws that small blocks would falsify; another process has them as they are, and threads share no
operation on a small one."""
OF_KEYS_AND_VALUES = ("support", "values_causality", "large_integers")
"""Laws that a `Mixer` cannot be tried by: it has no keys and values apart from its inputs. It keeps
`causality`."""
IN_EVERY_CONFIGURATION = ("gradient_flow", "setting_felt", "sharing")
"""Laws tried in all configurations: a parameter per pair of blocks is trained by an input of
several blocks only, a setting may have an effect beside one other alone, layers share in one."""
UNDER_DROPOUT = ("dropout_mean", "dropout_gradient", "dropout_leaks")
"""Laws that a mechanism cannot be tried by where dropout changes nothing."""
FUSED = [
    "sdpa",
    "grouped_query",
    "multi_query",
    "block_local",
    "sliding_window",
    "longformer",
    "bigbird",
    "sparse_fixed",
    "sparse_strided",
    "sinkhorn",
    "reformer",
    "synthesizer",
    "nystromformer",
    "linformer",
]
"""Mechanisms that call PyTorch's fused kernels."""
LAWS = [law for law in kit.select() if law.name not in AS_THEY_ARE]
OF_TILES = ("oracle", "causality", "padding_content")
"""Laws that tiles break first: their numbers and gradients, and that nothing is read across their
borders which is later or padding."""

OF_ITS_OWN = ("decode", "gradient_flow", "precision")
"""Laws of code that each mechanism has for itself, and no other stands for: how it remembers, what
it trains, in which precision it sums."""


@pytest.fixture(autouse=True)
def few_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    """Try fewer of a law's short cases: in small tiles each takes many times as long."""
    monkeypatch.setattr(rotated_sizes, "MOST", 12)


class Quick(Subject):
    """Asked at few lengths, in the configuration asked for, one other, and in parity."""

    lengths = (1, 2, 7, 37)  # type: ignore[assignment]
    far = ()

    @property
    def configs(self) -> tuple[MechanismConfig, ...]:
        other, rest = self.mechanism.trials[:1], self.mechanism.trials[1:]
        in_parity = [trial for trial in rest if getattr(trial, "parity", "none") != "none"]
        return (self.config, *other, *in_parity)


class Throughout(Subject):
    """Tried in every configuration, and on no long input."""

    far = ()


class Once(Subject):
    """Asked at one length, of several tiles, for everything that is claimed, in the first of its
    trials: at so short a length the paper's own blocks would be all there is."""

    lengths = (25,)  # type: ignore[assignment]
    far = ()

    @property
    def configs(self) -> tuple[MechanismConfig, ...]:
        return (*self.mechanism.trials, self.config)[:1]


def asked(name: str, law: Law, **where: Any) -> Subject:
    """A mechanism as it is tried here."""
    mechanism: Any = load(find("mechanism", name))
    kind = Throughout if law.name in IN_EVERY_CONFIGURATION else Quick
    return kind(mechanism, mechanism.Config(), **where)


def judge(name: str, law: Law, subject: Subject) -> None:
    """Fail where a law is broken, or left out though there is something to try it on."""
    found = kit.try_law(law, subject)
    assert found.verdict != "failed", found
    assert (found.verdict == "skipped") == _has_nothing_to_try(law, subject), (
        f"{name} and the law '{law.name}' ({law.says}): {found}. Where there is nothing to try it "
        "on, claim less in the card, or add configurations to `trials` in the mechanism's file"
    )


def _has_nothing_to_try(law: Law, subject: Subject) -> bool:
    if law.name in UNDER_DROPOUT:
        (dropout,) = kit.select(["dropout"])
        return kit.try_law(dropout, subject).verdict == "not claimed"
    if law.name == "setting_felt":
        return not subject.config.__struct_fields__
    if law.name == "sharing":
        return subject.mechanism.build_shared.__func__ is Layer.build_shared.__func__  # type: ignore[attr-defined]
    is_mixer = issubclass(subject.mechanism, Mixer)
    return law.name in OF_KEYS_AND_VALUES and is_mixer and law.claimed(subject.card)


@pytest.mark.parametrize("name", names("mechanism"))
def test_every_file_loads(name: str) -> None:
    mechanism: Any = load(find("mechanism", name))
    assert issubclass(mechanism, Layer) and isinstance(mechanism.card, AttentionCard)
    assert isinstance(mechanism.Config(), MechanismConfig)
    for declared in (mechanism.card, mechanism.Config(), *mechanism.trials):
        # msgspec checks types, words and bounds when it reads, not when a struct is made.
        assert msgspec.convert(msgspec.to_builtins(declared), type(declared)) == declared


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
@pytest.mark.parametrize("name", by_representatives(names("mechanism")))
def test_it_keeps_the_law(name: str, law: Law) -> None:
    judge(name, law, asked(name, law))


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize("law", kit.select(OF_TILES), ids=lambda law: law.name)
@pytest.mark.parametrize("name", others(names("mechanism")))
def test_it_keeps_the_law_across_tiles(name: str, law: Law) -> None:
    mechanism: Any = load(find("mechanism", name))
    judge(name, law, Once(mechanism, mechanism.Config()))


@pytest.mark.parametrize("law", kit.select(OF_ITS_OWN), ids=lambda law: law.name)
@pytest.mark.parametrize("name", others(names("mechanism")))
def test_it_keeps_the_law_by_code_of_its_own(name: str, law: Law) -> None:
    mechanism: Any = load(find("mechanism", name))
    flows = law.name == "gradient_flow"
    judge(name, law, asked(name, law) if flows else Once(mechanism, mechanism.Config()))


@pytest.fixture
def no_kept_plans() -> Iterator[None]:
    """Leave out cuDNN's attention. PyTorch keeps its plans of a backward pass by the layout of
    queries, keys and values, and not by that of the gradient: after another mechanism with inputs
    of these shapes, a process gets wrong gradients (torch 2.11, cuDNN 9.19, H200)."""
    before = torch.backends.cuda.cudnn_sdp_enabled()
    torch.backends.cuda.enable_cudnn_sdp(False)
    yield
    torch.backends.cuda.enable_cudnn_sdp(before)


@pytest.mark.gpu
@pytest.mark.usefixtures("no_kept_plans")
@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
@pytest.mark.parametrize("name", names("mechanism"))
def test_it_keeps_the_law_on_a_gpu(name: str, law: Law) -> None:
    judge(name, law, asked(name, law, device="cuda"))


@pytest.mark.gpu
@pytest.mark.parametrize("name", FUSED)
def test_halves_are_close_by_the_kernel_that_pytorch_prefers(name: str, tmp_path: Path) -> None:
    """Each law has a process of its own there, as each cell has."""
    words = ["--impl", name, "--check", "precision", "--device", "cuda", "--json"]
    command = [sys.executable, "-m", "lra", "verify", *words, "--store", str(tmp_path)]
    printed = subprocess.run(command, check=True, timeout=300, stdout=subprocess.PIPE).stdout
    (record,) = json.loads(printed)
    assert [finding["verdict"] for finding in record["findings"]] == ["held"]
