"""`lra data`: a task's data: examples, lengths, labels, and scores of simple baselines.

Its other commands, `prepare` and `check`, have files of their own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING

import click

from lra.cli import data_check, data_prepare, flags, options
from lra.cli.echo import echo
from lra.engine.plan.spec import RunSpec

if TYPE_CHECKING:
    from lra.core.cards import TaskMetric
    from lra.core.catalogue import Target
    from lra.core.dataset import Dataset, Split
    from lra.core.protocol import DataSpec
    from lra.core.scales import Scale
    from tasks.contract import Task

SHOWN = 8192
"""Characters shown of an example: a picture of 64 pixels a side is the longest that fits."""


@click.group("data", short_help="Look at a task's data, prepare and check real sets.")
def command() -> None:
    """Look at a task's data, generated or real; prepare real sets, and check them."""


command.add_command(data_prepare.command)
command.add_command(data_check.command)


@command.command("show")
@options.option(RunSpec, "tasks")
@options.option(RunSpec, "scale", default="mini", help=options.DATA_SCALE)
@options.option(RunSpec, "sources")
@click.option(
    "--examples",
    type=click.IntRange(min=0),
    default=2,
    show_default=True,
    metavar="N",
    help="Examples of the test split to print of each task, of as many labels as there are.",
)
def show(tasks: tuple[str, ...], scale: str, sources: tuple[str, ...], examples: int) -> None:
    """Prepare data as a run would, and print what is in it."""
    from lra.cli.data_progress import name_task_errors
    from lra.core.scales import load_scale
    from lra.engine.machine.host import cache_folder
    from lra.engine.plan.data import check_sources, refuse_misspelled_tasks, sources_by_task
    from tasks.sources.checking import tallies
    from tasks.sources.data_hash import prepared_name

    settings = load_scale(scale)
    given = flags.pairs(sources, "--data")
    check_sources(given)
    targets = _targets(tasks or tuple(given) or tuple(settings.tasks))
    refuse_misspelled_tasks(settings, targets)
    real = sources_by_task(given, targets)
    for target in targets:
        with name_task_errors(target):
            spec, task, data = _prepare(target, settings, real, cache_folder())
        name = prepared_name(target.file, spec)
        echo(f"{target.name}: {spec.source}, folder {name}, rules {spec.rules}")
        for part, tally in tallies(data).items():
            echo(f"  {part:<10} {data_check.describe_split(tally)}")
        for index in _shown_examples(data.test, examples):
            named = "example" if data.test.by_token else f"label {data.test.labels[index]}"
            echo(f"  {named}:")
            for sequence in range(index * data.inputs, (index + 1) * data.inputs):
                echo(indent(_truncate(task.shown(data.test.sequence(sequence))), "    "))
        with name_task_errors(target):
            scores = _baselines(task, data)
        for name, score in scores.items():
            echo(f"  {name.replace('_', ' ')}: {_score(score, task.card.metric)}")


def _shown_examples(split: Split, examples: int) -> list[int]:
    if split.by_token:
        return list(range(min(examples, len(split))))
    return balanced_places(split.labels, examples)


def balanced_places(labels: Iterable[int], number: int) -> list[int]:
    """Return the first places of each label, as evenly over the labels as their order allows."""
    rounds: dict[int, list[int]] = {}
    seen: Counter[int] = Counter()
    for place, label in enumerate(labels):
        rounds.setdefault(seen[int(label)], []).append(place)
        seen[int(label)] += 1
    return [place for same in rounds.values() for place in same][:number]


def _score(score: float, metric: TaskMetric) -> str:
    return f"{score:.1%}" if metric == "accuracy" else f"{score:.3f} {metric.replace('_', ' ')}"


def _targets(references: tuple[str, ...]) -> list[Target]:
    from lra.core import catalogue

    return catalogue.expand("task", references)


def _prepare(
    target: Target, scale: Scale, real: dict[str, str], cache: Path
) -> tuple[DataSpec, Task, Dataset]:
    from lra.cli.data_progress import show_progress
    from lra.engine.plan.data import data_spec
    from lra.engine.plan.describe import Describer
    from tasks.sources.data_hash import prepared_name
    from tasks.sources.opening import built, open_or_prepare

    source = real.get(target.name)
    spec = data_spec(target, scale, Describer(cache), source, rules=None)
    task, folder = built(target.reference, spec), cache / prepared_name(target.file, spec)
    with closing(show_progress(target.name)) as watch:
        return spec, task, open_or_prepare(task, spec, source, folder, watch)


def _truncate(example: str) -> str:
    """An example, cut to about a page."""
    return (
        example if len(example) <= SHOWN else f"{example[:SHOWN]} ... ({len(example)} characters)"
    )


def _baselines(task: Task, data: Dataset) -> dict[str, float]:
    from lra.measure.baselines import baselines
    from lra.measure.baselines_by_token import baselines_by_token

    found = baselines_by_token(data, task.card.metric) if data.test.by_token else baselines(data)
    found |= task.rules_of_thumb(data)
    best = task.floor(data)
    return found if best is None else {**found, "best possible": best}
