"""A deep copy, a pickled layer and a reloaded state dict are independent of the original, and
complete, also where the layers were called before."""

from __future__ import annotations

import copy
import pickle
import sys
from collections.abc import Iterator

import torch
from torch import Tensor

from attention_impls.contract import Layer
from lra.core.findings import Case
from lra.verify.law import Broken, Law, binds_all, require_same
from lra.verify.mixed_requests import Ask, answer, every_request, state_tensors, step
from lra.verify.rotation import rotate
from lra.verify.subject import Subject

TOLERANCE = 1e-9
COUNT = 10
"""Number of cases of the short form."""
LENGTHS = (2, 7, 37)


def cases(subject: Subject) -> Iterator[Case]:
    """Every kind of request in turn."""
    yield from rotate(every_request(subject, LENGTHS), COUNT, subject, "copies")


def check(subject: Subject, case: Case) -> None:
    """Copy a layer that was called, then train either; pickle it; load its state dict into another
    one that was called, then train either."""
    layer, other = subject.build(case, seed=1), subject.build(case, seed=2)
    fresh = list(layer.state_dict())
    wanted = _ask(subject, layer, case)
    _ask(subject, other, case)
    if list(layer.state_dict()) != fresh:
        raise Broken("a call changes which entries the state dict has")
    try:
        twin = copy.deepcopy(layer)
    except Exception as error:
        line = " ".join(str(error).split())
        raise Broken(f"no deep copy after a call: {type(error).__name__}: {line}") from error
    if subject.is_ours and _has_a_name(type(layer)):
        _require(subject, _ask(subject, _pickled(layer), case), wanted, "a layer that was pickled")
    _independent(subject, case, layer, twin, "a deep copy", wanted)
    wanted = _ask(subject, layer, case)
    saved = {name: value.clone() for name, value in layer.state_dict().items()}
    try:
        other.load_state_dict(saved)
    except RuntimeError as error:
        raise Broken(f"its state dict does not load after a call: {error}") from error
    _independent(subject, case, layer, other, "a layer that was called, then loaded", wanted)
    _assigned(subject, case, layer)
    for name, value in other.state_dict().items():
        if name in saved and _shares(value, saved[name]):
            raise Broken(f"{name} of a loaded layer is the state dict's own memory")


def _has_a_name(kind: type[Layer]) -> bool:
    """Whether a class can be imported by its name, as what is pickled has to be."""
    return getattr(sys.modules.get(kind.__module__), kind.__qualname__, None) is kind


def _pickled(layer: Layer) -> Layer:
    """Return a layer as `torch.save` writes it whole, or another process gets it."""
    try:
        twin: Layer = pickle.loads(pickle.dumps(layer))
    except Exception as error:
        line = " ".join(str(error).split())
        raise Broken(
            f"it cannot be pickled after a call: {type(error).__name__}: {line}"
        ) from error
    return twin


def _independent(
    subject: Subject, case: Case, layer: Layer, other: Layer, what: str, wanted: dict[str, Tensor]
) -> None:
    """Require the same answers of both, and of each the same after the other has changed."""
    own = dict(state_tensors(layer))
    for name, one in state_tensors(other):
        if name in own and _shares(one, own[name]):
            raise Broken(f"{name} of {what} is the original's own memory")
    _require(subject, _ask(subject, other, case), wanted, what)
    step(layer)
    _require(subject, _ask(subject, other, case), wanted, f"{what}, after the original's step")
    wanted = _ask(subject, layer, case)
    step(other)
    step(other)
    _require(subject, _ask(subject, layer, case), wanted, f"the original, after a step of {what}")


def _assigned(subject: Subject, case: Case, layer: Layer) -> None:
    """Require the same of a layer that was called and then got the tensors themselves."""
    other = subject.build(case, seed=3)
    x_BND, source_BMD = subject.inputs(case)
    with torch.no_grad():
        wanted, _ = (
            one(x_BND, subject.context(case, one), source_BMD=source_BMD).y_BND
            for one in (layer, other)
        )
        saved = {name: value.clone() for name, value in layer.state_dict().items()}
        other.load_state_dict(saved, assign=True)
        found = other(x_BND, subject.context(case, other), source_BMD=source_BMD).y_BND
    what = "the output of a layer that was called, then loaded with assign=True"
    require_same(found, wanted, what, subject.allowed(TOLERANCE))


def _ask(subject: Subject, layer: Layer, case: Case) -> dict[str, Tensor]:
    found = answer(subject, layer, Ask(case))
    return {name: value.detach().clone() for name, value in found.items()}


def _require(
    subject: Subject, found: dict[str, Tensor], wanted: dict[str, Tensor], what: str
) -> None:
    for name, value in wanted.items():
        require_same(found[name], value, f"{name} of {what}", subject.allowed(TOLERANCE))


def _shares(one: Tensor, other: Tensor) -> bool:
    ours, theirs = one.untyped_storage(), other.untyped_storage()
    return ours.nbytes() > 0 and ours.data_ptr() == theirs.data_ptr()


LAW = Law(
    name="copies",
    says="a deep copy and a reloaded state dict are independent",
    claimed=binds_all,
    cases=cases,
    check=check,
)
