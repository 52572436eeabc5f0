"""The planner of `lra show`: one cell per mechanism. Never imports torch."""

from __future__ import annotations

from pathlib import Path

from lra.core import catalogue
from lra.core.cards import AttentionCard
from lra.core.catalogue import Target
from lra.core.cells import Direction, ShowCell
from lra.core.errors import UsageError
from lra.core.hashing import file_hash
from lra.core.pattern import check_size
from lra.core.protocol import Mechanism
from lra.core.scales import Scale, load_scale
from lra.core.vectors import read_vectors
from lra.engine.jobs import Job
from lra.engine.machine.host import machine
from lra.engine.machine.provenance import library_version
from lra.engine.plan.describe import Describer, Description
from lra.engine.plan.planner import find_unavailable
from lra.engine.plan.settings import Settings
from lra.engine.plan.spec import ShowSpec
from lra.engine.plan.versions import measure_hash, mechanism_hash

LENGTH = 64
"""Number of positions where none is asked for."""


def plan_show(spec: ShowSpec) -> list[Job]:
    """Return one job per mechanism.

    One that cannot be imported gets a job too, whose record gives the reason. Raises `UsageError`
    for any name, key or value that does not exist, where nothing can be imported, and for a size
    that no picture has; `DataError` for an input that cannot be read.
    """
    targets = catalogue.expand("mechanism", spec.mechanisms)
    length, width = LENGTH if spec.length is None else spec.length, spec.heads * spec.head_width
    if spec.input is not None:
        if spec.length is not None:
            raise UsageError("--input has a length of its own; leave --length out")
        length, width = read_vectors(Path(spec.input)).shape
    check_size(length, spec.heads)
    scale, settings = load_scale(spec.scale), Settings(spec.settings)
    describer = Describer(Path(spec.cache))
    find_unavailable(targets, describer)
    jobs = [
        _job(spec, target, (length, width), scale, settings, describer.describe(target))
        for target in targets
    ]
    settings.refuse_unused()
    return jobs


def _job(
    spec: ShowSpec,
    target: Target,
    shape: tuple[int, int],
    scale: Scale,
    settings: Settings,
    description: Description,
) -> Job:
    config = settings.configure(
        target, description, asked_for=True, scale=scale.mechanisms.get(target.name, {})
    )
    cell = ShowCell(
        machine=machine("cpu"),
        torch=library_version("torch"),
        threads=1,
        versions={
            "show": measure_hash("show", "measure/pattern.py"),
            f"mechanism/{target.name}": mechanism_hash(target, description, "show"),
        },
        mechanism=Mechanism(name=target.name, config=config),
        length=shape[0],
        width=shape[1],
        heads=spec.heads,
        head_width=spec.head_width,
        direction=spec.direction or _direction(description),
        input="" if spec.input is None else file_hash(Path(spec.input)),
    )
    return Job(
        cell=cell,
        mechanism=target.reference,
        unavailable=description.unavailable or "",
        source=spec.input,
        cache=spec.cache,
    )


def _direction(description: Description) -> Direction:
    """Bidirectional where the mechanism allows it."""
    card = description.card
    both = not isinstance(card, AttentionCard) or card.capabilities.bidirectional
    return "bidirectional" if both else "causal"
