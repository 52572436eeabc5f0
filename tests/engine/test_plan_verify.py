"""Whatever can change a verdict changes the cell that holds it."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from lra.core import catalogue, peers
from lra.core.cells import VerifyCell
from lra.engine.plan import verify as planner
from lra.engine.plan import versions
from lra.engine.plan.describe import Describer, Description

VERIFY = Path(planner.__file__).resolve().parents[2] / "verify"


def test_position_schemes_that_laws_name_are_in_the_hash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "".join(file.read_text() for file in VERIFY.rglob("*.py"))
    named = {name for name in catalogue.names("position") if f'"{name}"' in text}
    assert named - {"none"} == set(planner.POSITIONS)

    spec = planner.VerifySpec(mechanisms=("identity",), device="cpu", cache=str(tmp_path))
    hashes = set()
    for positions in (planner.POSITIONS, ("alibi",), ("rope",), ()):
        monkeypatch.setattr(planner, "POSITIONS", positions)
        (job,) = planner.plan_verify(spec)
        assert isinstance(job.cell, VerifyCell)
        hashes.add(job.cell.versions["verify"])
    assert len(hashes) == 4


def test_the_full_form_is_another_cell(tmp_path: Path) -> None:
    short = planner.VerifySpec(mechanisms=("identity",), device="cpu", cache=str(tmp_path))
    cells = [
        job.cell
        for spec in (short, msgspec.structs.replace(short, full=True))
        for job in planner.plan_verify(spec)
    ]
    assert [cell.form for cell in cells] == ["short", "full"] and cells[0].id != cells[1].id


def test_what_a_peers_file_lets_the_kit_try_is_in_the_hash_of_proofs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(versions, "distribution_hash", lambda package: "0")
    target = catalogue.find("mechanism", "peer:hf_bigbird")
    described = Description(target, None, {}, None, _describer=Describer(tmp_path))
    peer = peers.read(target.name)
    proved, measured = [], []
    for changes in ({}, {"trials": ()}, {"claims": {"causal": "no"}}):
        changed = msgspec.structs.replace(peer, **changes)
        monkeypatch.setattr(peers, "read", lambda name, peer=changed: peer)
        proved.append(versions.mechanism_hash(target, described, "verify"))
        measured.append(versions.mechanism_hash(target, described, "call"))
    assert len(set(proved)) == 3
    # Claims decide how a training pads, and which timings are refused; trials are for the kit.
    assert measured[0] == measured[1] != measured[2]
