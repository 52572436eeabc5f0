"""`lra data prepare`: turn a real source into a set that runs map into memory at any length."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from lra.cli import flags
from lra.cli.exit_codes import INTERRUPTED

if TYPE_CHECKING:
    from lra.core.catalogue import Target
    from lra.core.protocol import Rules
    from lra.core.scales import Scale
    from tasks.contract import Task


@click.command("prepare", short_help="Turn a real source into a set for runs at any length.")
@click.argument("task", required=False, metavar="[TASK]")
@click.option(
    "--from",
    "source",
    required=True,
    metavar="PATH|hub",
    help="A file, a folder, hub (the task's usual set) or hub:NAME; without TASK the folder of the "
    "Long Range Arena release.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Where the set is to lie, of a release a folder with a set for each task. Default: "
    "prepared/TASK in the cache.",
)
@flags.data_scale("compact")
@flags.rules
def command(
    task: str | None, source: str, out: Path | None, scale: str, rules: Rules | None
) -> int:
    """Read all rows of a real source once, uncut, and keep them as Arrow files.

    \b
    python -m lra data prepare text --from hub
    python -m lra data prepare retrieval --from lra_release/tsv_data
    python -m lra data prepare --from lra_release

    Stopped or killed, the same command goes on where it was. The scale gives what a set cannot be
    cut to later: the number of pixels, of bytes in a window.
    """
    from lra.core import catalogue
    from lra.core.errors import LraError
    from lra.core.scales import load_scale
    from lra.engine.host import cache_folder
    from lra.report.words import visible
    from tasks.sources.release import release_sets

    settings = load_scale(scale)
    place = cache_folder() / "prepared"
    try:
        if task is not None:
            target = catalogue.find("task", task)
            _prepare(target, settings, rules, source, out or place / target.name)
            return 0
        code = 0
        for name, folder in release_sets(source).items():
            try:
                target = catalogue.find("task", name)
                _prepare(target, settings, rules, str(folder), (out or place) / name)
            except LraError as error:
                code = error.exit_code
                click.echo(f"lra: {visible(f'{name}: {error}')}", err=True)
        return code
    except KeyboardInterrupt:
        click.echo("lra: interrupted; whole parts are kept, run again to go on", err=True)
        return INTERRUPTED


def build(target: Target, scale: Scale, rules: Rules | None) -> Task:
    """Return a task as a scale has it."""
    from lra.core import catalogue
    from lra.core.scales import convert

    setting = scale.task(target.name)
    kind = cast("type[Task]", catalogue.load(target))
    where = f"scale '{scale.name}', parameters of task '{target.name}'"
    config = convert(setting.parameters, kind.Config, where)
    return kind(config, length=setting.length, rules=rules or scale.rules)


def _prepare(target: Target, scale: Scale, rules: Rules | None, source: str, folder: Path) -> None:
    from lra.cli.making import shown
    from tasks.sources.files import resolved
    from tasks.sources.whole_sets import prepare_whole

    task = build(target, scale, rules)
    source = resolved(source, target.name, task.hub)
    folder = folder.expanduser().absolute()
    click.echo(f"{target.name}: looks at what '{source}' holds", err=True)
    watch = shown(target.name)
    try:
        made = prepare_whole(task, target.name, target.file, source, folder, watch)
    finally:
        watch.close()
    click.echo(f"{target.name}: {'prepared' if made else 'was prepared already'}, {_told(folder)}")
    click.echo(f"use it with: --data {target.name}={folder}")


def _told(folder: Path) -> str:
    from lra.report.words import quantity
    from tasks.sources.facts import read_facts

    facts = read_facts(folder)
    rows = ", ".join(f"{number:,} {split}" for split, number in facts.rows.items())
    size = quantity(sum(facts.bytes.values()), "B")
    return f"{rows}; longest {facts.length:,} tokens; {size}"
