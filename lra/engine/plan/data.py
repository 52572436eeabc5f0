"""Data of each task of a run: generated, or from a source that `--data` names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast

from lra.core import catalogue, loading
from lra.core.cards import TaskCard
from lra.core.catalogue import Target
from lra.core.errors import UsageError, closest_names, ensure_readable
from lra.core.paths import path_kind
from lra.core.protocol import DataSpec, Rules
from lra.core.scales import Scale, convert, load_scale, names
from lra.engine.plan.describe import Describer
from tasks.contract import Task
from tasks.sources.data_hash import content_hash, source_kind
from tasks.sources.files import HUB, expanded, resolved


def data_spec(
    task: Target, scale: Scale, describer: Describer, source: str | None, rules: Rules | None
) -> DataSpec:
    """Return the data of a task at a scale: generated, or from a hashed real source."""
    settings = scale.task(task.name)
    card = describer.describe(task).card
    only = card.length if isinstance(card, TaskCard) else None
    if only not in (None, settings.length):
        raise UsageError(
            f"{task.name} has {only} tokens, scale '{scale.name}' gives it {settings.length}; "
            + _length_advice(task.name, only, has_table=task.name in scale.tasks)
        )
    parameters = describer.describe(task).configure(settings.parameters, _where(scale, task))
    rules = rules or scale.rules
    asked: dict[str, Any] = {
        "length": settings.length,
        "rules": rules,
        "parameters": parameters,
    }
    return DataSpec(
        task=task.name,
        source=source_kind(source),
        hash="" if source is None else content_hash(source, task.name, **asked),
        rows=settings.rows,
        **asked,
    )


def refuse_misspelled_tasks(scale: Scale, tasks: Sequence[Target]) -> None:
    """Raise `UsageError` for a table of the scale that seems to mean one of the tasks but has
    another name: the task would silently get [default]."""
    known = {
        *catalogue.names("task"),
        *catalogue.entry_point_names("task"),
        *(t.name for t in tasks),
    }
    for task in tasks:
        if task.name in scale.tasks:
            continue
        for alike in closest_names(task.name, scale.tasks.keys() - known):
            is_longer = alike.startswith(task.name) or task.name.startswith(alike)
            if not is_longer and not task.file.with_name(f"{alike}.py").exists():
                raise UsageError(
                    f"scale '{scale.name}' has [tasks.{alike}] and nothing for the task "
                    f"'{task.name}'; mend that name, or add [tasks.{task.name}]"
                )


def _length_advice(task: str, length: int | None, *, has_table: bool) -> str:
    """Advice: our scale with the task at its only length, or else the lines to write."""
    if has_table:
        return f"set length = {length} in its [tasks.{task}]"
    known = [name for name in names("scales") if task in load_scale(name).tasks]
    if known:
        return f"choose a scale that names it: {', '.join(known)}"
    return f"add [tasks.{task}] with length = {length} and rows to a scale of your own"


def task_of(target: Target, scale: Scale, rules: Rules | None) -> Task:
    """Return a task with a scale's parameters."""
    settings = scale.task(target.name)
    kind = cast(type[Task], loading.load(target))
    config = convert(settings.parameters, kind.Config, _where(scale, target))
    return kind(config, length=settings.length, rules=rules or scale.rules)


def _where(scale: Scale, task: Target) -> str:
    return f"scale '{scale.name}', parameters of task '{task.name}'"


def sources_by_task(sources: dict[str, str], tasks: Iterable[Target]) -> dict[str, str]:
    """Return real data by the name of its task, with `hub` alone replaced by the set that it stands
    for.

    Refuses data for a task that is not among these.
    """
    found = {}
    for key, source in sources.items():
        target = catalogue.find("task", key)
        usual = getattr(loading.load(target), "hub", None) if source == "hub" else None
        found[target.name] = resolved(source, target.name, usual)
    for task in found.keys() - {target.name for target in tasks}:
        raise UsageError(
            f"--data {task}: the run has no task '{task}'; name it with --task too, or leave "
            "--task out"
        )
    return found


def check_sources(sources: dict[str, str]) -> None:
    """Refuse `--data` for a task that does not exist, and for a path that does not."""
    for task, source in sources.items():
        catalogue.find("task", task)
        if source == "hub" or source.startswith(HUB):
            continue
        with ensure_readable(f"--data {task}={source}"):
            there = path_kind(expanded(source)) is not None
        if not there:
            raise UsageError(f"--data {task}={source}: no such file or folder; check the path")
