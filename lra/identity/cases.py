"""Cases of the probe: small cells and calls, each about one feature whose behaviour it shows.

A case is as small as its feature allows: ten steps on 48 ragged rows, a width of 16. Together they
enter nearly every function that figures come from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

from msgspec.structs import replace

from lra.core import catalogue, versions
from lra.core.cells import Cell, EfficiencyCell, ProfileCell, QualityCell
from lra.core.forms import load_preset
from lra.core.protocol import DataSpec, Machine, Mechanism, ModelSpec, Rows, TrainSpec
from lra.identity import calls, data, outcomes

MODEL = ModelSpec(layers=2, width=16, qkv_width=16, heads=2, mlp_width=32, position="none")
TRAINING = TrainSpec(
    steps=10, batch=8, learning_rate=3e-3, warmup=2, flat=0.3, weight_decay=0.01, clip=1.0,
    evaluate_every=5, evaluation_batch=8,
)  # fmt: skip
HERE: dict[str, Any] = {"machine": Machine(processor="any", cores=1), "torch": "", "threads": 1}
RAGGED = DataSpec(
    task="Ragged", hash="probe", length=40, rows=Rows(train=48, validation=16, test=16)
)

Yields = Callable[[], Iterator[object]]


class Case(NamedTuple):
    """One small run, and the features that it shows."""

    name: str
    about: str
    """Feature to bump where the case moves by itself."""
    uses: tuple[str, ...]
    """Other features that move it: where one of these is bumped, `about` need not be. Never in a
    circle."""
    run: Yields


TRAININGS: dict[str, dict[str, dict[str, Any]]] = {
    "": {},
    "bfloat16": {"training": {"precision": "bfloat16"}},
    "causal": {"model": {"causal": True}},
    "classifier_widths": {"model": {"classifier_widths": (8,)}},
    "cls": {"model": {"pooling": "cls"}, "data": {"task": "Rows", "length": 16}},
    "compiled": {"training": {"execution": "compiled"}},
    "constant": {"training": {"schedule": "constant"}},
    "dropout": {"model": {"dropout": 0.2, "attention_dropout": 0.2}},
    "encoder_decoder": {
        "model": {"body": "encoder_decoder", "pooling": "none"},
        "data": {"task": "Sequences"},
    },
    "first": {"model": {"pooling": "first"}},
    "form": {
        "model": {"causal": True, "pooling": "none", "form": load_preset("gpt2").form},
        "data": {"task": "Tokens"},
    },
    "last": {"training": {"tested": "last", "learning_rate": 0.1}},
    "linear": {"training": {"schedule": "linear", "warmup": 4}},
    "lra2021": {"data": {"rules": "lra2021"}},
    "micro_batches": {"training": {"micro_batches": 2}},
    "no_biases": {"model": {"projection_biases": False}},
    "pairs": {"data": {"task": "Pairs"}},
    "recompute": {"training": {"recompute": True}},
    "rsqrt": {"training": {"schedule": "rsqrt", "warmup": 3}},
    "tied": {"model": {"query_key_start": "tied"}},
    "tokens": {
        "model": {"causal": True, "pooling": "none"},
        "data": {"task": "Tokens"},
        "cell": {"metric": "bits_per_byte"},
    },
    "unbucketed": {"training": {"bucketed": False}},
}
"""Changes of the plain training in the case of each feature of `train`."""
MORE: dict[str, dict[str, dict[str, Any]]] = {
    "train/pairs, two features": {"data": {"task": "Pairs"}, "model": {"pair_features": "two"}},
    "train, no clipping": {"training": {"clip": None, "weight_decay": 0.0}},
    "train, rounded": {"data": {"rows": Rows(train=47, validation=15, test=13)}},
    "train, diverged": {"training": {"learning_rate": 1e30, "clip": None}},
    "train/lra2021, cls": {"data": {"rules": "lra2021"}, "model": {"pooling": "cls"}},
    "train/form, of two stacks": {
        "model": {
            "body": "encoder_decoder",
            "pooling": "none",
            "form": load_preset("t5").form,
            "slots": {"decoder": Mechanism(name="sdpa")},
        },
        "data": {"task": "Sequences"},
    },
    "data/shuffled": {"data": {"order": "shuffled"}},
}
"""More cases; each is about the feature that its name begins with."""
TIMINGS: dict[str, dict[str, Any]] = {
    "": {},
    "attention": {"level": "attention"},
    "compiled": {"execution": "compiled"},
    "decode": {"mode": "decode", "direction": "causal"},
    "model": {"level": "model", "model": MODEL, "task": "Ragged"},
    "model_decode": {
        "level": "model",
        "mode": "decode",
        "direction": "causal",
        "model": replace(
            MODEL,
            body="encoder_decoder",
            pooling="none",
            causal=True,
            slots={"encoder": Mechanism(name="sdpa"), "decoder": Mechanism(name="sdpa")},
        ),
        "task": "Sequences",
    },
    "train": {"mode": "train"},
}
"""Changes of the plain timing in the case of each feature of `time`."""


def cases() -> list[Case]:
    """Return all cases, the longest first."""
    return [
        *(case for name in catalogue.names("mechanism") for case in _of_mechanism(name)),
        *(case for name in catalogue.names("task") for case in _of_task(name)),
        *_of_training(),
        *_of_timing(),
    ]


def _of_mechanism(name: str) -> Iterator[Case]:
    own = f"mechanism/{name}"
    kinds = {own: calls.numbers, f"{own}/cost": calls.trace, f"{own}/portable": calls.portable}
    if calls.decodes(name):
        kinds[f"{own}/decode"] = calls.decoding
        if calls.pads(name):
            kinds[f"{own}/decode, padded"] = calls.padded_decoding
    if calls.has_attention_weights(name):
        kinds[f"{own}/oracle"] = calls.oracle
    for case, kind in kinds.items():
        # An oracle shares no code with the mechanism that it is compared with.
        uses = () if kind in (calls.numbers, calls.oracle) else (own,)
        yield Case(case, case.partition(",")[0], uses, partial(kind, name))


def _of_task(name: str) -> Iterator[Case]:
    feature = f"data/{name}"
    yield Case(feature, feature, (), partial(data.generated, name))
    if settings := data.SETTINGS.get(name):
        case = ", ".join([feature, *settings])
        yield Case(case, feature, (), partial(data.generated, name, **settings))
    if name in data.FILES:
        yield Case(f"{feature}/read", f"{feature}/read", (), partial(data.read, name))


def _of_training() -> Iterator[Case]:
    plain = {f"train/{name}".rstrip("/"): changes for name, changes in TRAININGS.items()}
    for name, changes in (plain | MORE).items():
        yield _training(name, changes, "sdpa")
    # Numbers do not show these: recomputation gives the same ones, and decoding agrees wherever it
    # begins.
    for name, phase in (("train/recompute, traced", "train"), ("train/tokens, decoded", "decode")):
        changes = plain[name.partition(",")[0]]
        case = _training(name, changes, "sdpa", run=partial(outcomes.operator_trace, phase))
        # A profile lists the operators that all trainings have.
        yield case._replace(uses=(*case.uses, "profile"))
    yield _training("train, redrawn", {"training": {"steps": 12}}, "performer", {"redraw_every": 4})
    yield _training("train, resumed", {}, "sdpa", run=outcomes.resumed_training)
    yield _training("look", plain["train/cls"], "sdpa", run=outcomes.trained_attention)
    for name in catalogue.names("position"):
        yield _training(f"position/{name}", {"model": {"position": name}}, "sdpa")
    profile = ProfileCell(
        scale="probe", versions={}, **HERE, mechanism=Mechanism(name="sdpa", config={}),
        data=RAGGED, model=MODEL, training=TRAINING, seconds=0.05,
    )  # fmt: skip
    yield Case(
        "profile",
        "profile",
        ("train", *_for_features("sdpa")),
        partial(outcomes.operator_trace, "", profile),
    )


def _training(
    name: str,
    changes: dict[str, dict[str, Any]],
    mechanism: str,
    config: dict[str, Any] | None = None,
    run: Callable[[Cell], Iterator[object]] = outcomes.cell_outcome,
) -> Case:
    model = replace(MODEL, **changes.get("model", {}))
    training = replace(TRAINING, **changes.get("training", {}))
    spec = replace(RAGGED, **changes.get("data", {}))
    cell = QualityCell(
        scale="probe", versions={}, **HERE, data=spec, model=model, training=training,
        mechanism=Mechanism(name=mechanism, config=config or {}), **changes.get("cell", {}),
    )  # fmt: skip
    inputs = 2 if spec.task in ("Pairs", "Sequences") else 1
    features = versions.of_training(model, training, rules=spec.rules, inputs=inputs, device="cpu")
    about, uses = name.partition(",")[0], {*features, *_for_features(mechanism)}
    if about == "look":
        uses.add(f"mechanism/{mechanism}/oracle")
    elif about not in (*features, "data/shuffled"):
        about = "train"
    if about == "train":
        # All other features of a plain training have cases that use `train`.
        uses = set(_for_features(mechanism))
    return Case(name, about, tuple(sorted(uses - {about})), partial(run, cell))


def _of_timing() -> Iterator[Case]:
    for name, changes in TIMINGS.items():
        feature = f"time/{name}".rstrip("/")
        values: dict[str, Any] = {"mode": "forward", "heads": 2, "head_width": 8, **changes}
        cell = EfficiencyCell(
            scale="probe", versions={}, **HERE, mechanism=Mechanism(name="linear", config={}),
            length=64, seconds=0.05, **values,
        )  # fmt: skip
        uses = ("time", *_for_features("linear"), "mechanism/linear/decode")
        if name == "model_decode":
            uses += ("time/decode", "time/model", "train/encoder_decoder", *_for_features("sdpa"))
        others = tuple(other for other in uses if other != feature)
        yield Case(feature, feature, others, partial(outcomes.cell_outcome, cell))
        if feature == "time/model":
            # No figure of its record shows the cost of the model around a mechanism.
            traced = partial(outcomes.operator_trace, "", cell)
            yield Case(f"{feature}, traced", feature, others, traced)


def _for_features(mechanism: str) -> tuple[str, ...]:
    return f"mechanism/{mechanism}", f"mechanism/{mechanism}/cost"
