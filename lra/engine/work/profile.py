"""Profile of a training step: where its time goes."""

from __future__ import annotations

from lra.core.cells import ProfileCell
from lra.engine.jobs import Job, Outcome, Progress, Report
from lra.engine.work.data import load
from lra.engine.work.mechanism import device, load_network
from lra.measure.profile import measure_profile
from lra.models.build import parameter_count
from lra.training.setup import Training, model_for


def run(cell: ProfileCell, job: Job, report: Report) -> Outcome:
    """Return the time of a step, of its parts and of its operators."""
    place = device(cell.device)
    network = load_network(cell.model, cell.mechanism, job.mechanism)
    report(Progress(phase="data"))
    task, dataset = load(cell.data, job)
    report(Progress(phase="build"))
    model = model_for(
        dataset,
        cell.model,
        network=network,
        rules=cell.data.rules,
        seed=0,
        picture_width=task.card.picture_width(cell.data.length),
        answers_first=task.card.answers_first,
    )
    measured = measure_profile(
        model,
        Training(
            dataset,
            cell.training,
            seed=0,
            rules=cell.data.rules,
            pad_to_length=network.capabilities.padding != "content",
        ),
        device=place,
        seconds=cell.seconds,
        report=lambda phase: report(Progress(phase=phase)),
    )
    return Outcome(
        status="ok",
        metrics=measured.metrics,
        parameters=parameter_count(model),
        rows=dataset.rows,
        method=measured.method,
    )
