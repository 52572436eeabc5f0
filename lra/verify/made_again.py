"""A mechanism made again in another process, under other hashes: `python -m lra.verify.made_again
FOLDER` reads what to make and to answer there, and leaves the answers.

B batch   N positions   D model width
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import torch
from torch import Tensor

from attention_impls.contract import Layer, MechanismConfig
from lra.adapters.adapt import configure, load
from lra.core import catalogue
from lra.core.errors import LraError
from lra.core.findings import Case, parse
from lra.verify.law import Broken, Untried
from lra.verify.subject import Subject, seed_torch

ASKED, ANSWERED = "asked.pt", "answered.pt"
UNMADE = 3
"""Exit code of a process that cannot make the mechanism."""
PATIENCE = 60.0
"""Time limit of the other process in seconds."""
RATE = 0.25
"""Rate of dropout."""

Question = tuple[MechanismConfig, Case]
Answers = list[dict[str, Tensor]]
States = list[dict[str, Tensor]]


def states(subject: Subject, questions: list[Question]) -> States:
    """Return the state dict of a layer for each question."""
    return [_build(subject, question, seed=1).state_dict() for question in questions]


@torch.no_grad()
def answers(subject: Subject, questions: list[Question], known: States) -> Answers:
    """Return the outputs of layers of one seed, and of one that another layer's state is loaded
    into, for each question."""
    found = []
    for question, state in zip(questions, known, strict=True):
        _, case = question
        x_BND = subject.inputs(case)[0].detach()
        layer = _build(subject, question, seed=1)
        context = subject.context(case, layer)
        own = {"the output of a layer of the same seed": layer(x_BND, context).y_BND}
        layer.after_step(1)
        own["the output of a layer of the same seed after a step"] = layer(x_BND, context).y_BND
        if subject.trains_quietly:
            dropping = _build(subject, question, seed=1, dropout=RATE).train()
            seed_torch(2)
            own["training with dropout under the same seed"] = dropping(x_BND, context).y_BND
        loaded = _build(subject, question, seed=2)
        loaded.load_state_dict(state)
        own["the output of a layer with the same state dict"] = loaded(x_BND, context).y_BND
        found.append(own)
    return found


def _build(subject: Subject, question: Question, **sizes: Any) -> Layer:
    config, case = question
    return subject.build(case, config=config, max_length=case.n, **sizes)


def answers_elsewhere(subject: Subject, questions: list[Question], known: States) -> Answers:
    """Return the answers of another process.

    Raises `Untried` where it cannot make the mechanism, and `Broken` where it has no answers.
    """
    asked = {
        "reference": _reference(subject),
        "questions": [(msgspec.to_builtins(config), str(case)) for config, case in questions],
        "states": known,
        "device": subject.device,
        "in_float32": subject.in_float32,
        "threads": torch.get_num_threads(),
    }
    with TemporaryDirectory() as folder:
        torch.save(asked, Path(folder) / ASKED)
        try:
            done = subprocess.run(
                [sys.executable, "-m", __name__, folder],
                env=_other_hashes(),
                capture_output=True,
                text=True,
                timeout=PATIENCE,
            )
        except subprocess.TimeoutExpired:
            raise Untried(f"another process had no answers after {PATIENCE:.0f} s") from None
        last = done.stderr.strip().rpartition("\n")[2] or f"exit code {done.returncode}"
        if done.returncode == UNMADE:
            raise Untried(f"it cannot be made in another process: {last}")
        if done.returncode:
            raise Broken(f"another process, asked the same, ends in: {last}")
        answered: Answers = torch.load(Path(folder) / ANSWERED)
    return answered


def _reference(subject: Subject) -> str:
    """Return the name that the mechanism can be found by elsewhere."""
    kind = subject.mechanism
    if subject.reference:
        return subject.reference
    if getattr(sys.modules.get(kind.__module__), kind.__name__, None) is not kind:
        raise Untried("it has no name that another process could import it by")
    return f"{kind.__module__}:{kind.__name__}"


def _other_hashes() -> dict[str, str]:
    other = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    return {**os.environ, "PYTHONHASHSEED": other, "PYTHONPATH": os.pathsep.join(sys.path)}


def _make(asked: dict[str, Any]) -> tuple[Subject, list[Question]]:
    layer = load(catalogue.find("mechanism", asked["reference"]))
    questions = [
        (msgspec.convert(config, layer.Config), parse(case)) for config, case in asked["questions"]
    ]
    first = questions[0][0]
    mechanism = configure(layer, first)
    own = Subject(mechanism, first, device=asked["device"], in_float32=asked["in_float32"])
    return own, questions


def main(folder: Path) -> None:
    """Answer what is asked in a folder."""
    asked = torch.load(folder / ASKED)
    torch.set_num_threads(asked["threads"])
    try:
        subject, questions = _make(asked)
    except (ImportError, LraError, msgspec.ValidationError) as error:
        print(" ".join(f"{error}".split()), file=sys.stderr)
        sys.exit(UNMADE)
    torch.save(answers(subject, questions, asked["states"]), folder / ANSWERED)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
