"""The planner of `lra verify`: one cell per mechanism. Never imports torch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from lra.core import catalogue
from lra.core.catalogue import Target
from lra.core.cells import VerifyCell
from lra.core.errors import UsageError, unknown_name
from lra.core.protocol import Mechanism
from lra.engine.jobs import Job
from lra.engine.machine.host import machine
from lra.engine.machine.provenance import library_version
from lra.engine.plan.describe import Describer
from lra.engine.plan.planner import find_unavailable
from lra.engine.plan.settings import Settings
from lra.engine.plan.spec import VerifySpec
from lra.engine.plan.versions import measure_hash, mechanism_hash

POSITIONS = ("alibi", "rope")
"""Position schemes that laws use by name, and so without an import."""


def plan_verify(spec: VerifySpec) -> list[Job]:
    """Return one job per mechanism.

    One that cannot be imported gets a job too, whose record gives the reason. Raises `UsageError`
    for any name, key or value that does not exist, and where nothing can be imported.
    """
    spec = replace(spec, laws=parse_law_names(spec.laws))
    settings, describer = Settings(spec.settings), Describer(Path(spec.cache))
    targets = catalogue.expand("mechanism", spec.mechanisms)
    find_unavailable(targets, describer)
    jobs = [_job(spec, target, settings, describer) for target in targets]
    settings.refuse_unused()
    return jobs


def law_names() -> list[str]:
    """Return the names of all laws, taken from their files."""
    folder = Path(__file__).resolve().parents[2] / "verify" / "laws"
    return sorted(file.stem for file in folder.glob("*.py") if file.stem != "__init__")


def _job(spec: VerifySpec, target: Target, settings: Settings, describer: Describer) -> Job:
    description = describer.describe(target)
    config = settings.configure(target, description, asked_for=True)
    positions = tuple(catalogue.find("position", name).file for name in POSITIONS)
    cell = VerifyCell(
        machine=machine(spec.device),
        torch=library_version("torch"),
        threads=1,
        versions={
            "verify": measure_hash("verify", "verify/kit.py", outside=positions),
            f"mechanism/{target.name}": mechanism_hash(target, description, "verify"),
        },
        mechanism=Mechanism(name=target.name, config=config),
        form="full" if spec.full else "short",
        laws=spec.laws,
        case=spec.case,
        device=spec.device,
    )
    return Job(
        cell=cell,
        mechanism=target.reference,
        unavailable=description.unavailable or "",
        cache=spec.cache,
    )


def parse_law_names(laws: Sequence[str]) -> tuple[str, ...]:
    """Return the law names in comma lists, checked.

    Raises `UsageError` with the nearest name for one that does not exist.
    """
    known = law_names()
    found = [name.strip() for entry in laws for name in entry.split(",") if name.strip()]
    if laws and not found:
        raise UsageError(f"--check {','.join(laws)}: names no law; e.g. --check causality")
    for name in found:
        if name not in known:
            raise unknown_name("law", name, known)
    return tuple(dict.fromkeys(found))
