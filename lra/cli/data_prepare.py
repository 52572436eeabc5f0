"""`lra data prepare`: a real source as a set for runs of any length, or a generated set ahead."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lra.cli import flags, options
from lra.cli.echo import echo
from lra.cli.exit_codes import INTERRUPTED
from lra.engine.plan.spec import RunSpec

if TYPE_CHECKING:
    from lra.core.catalogue import Target
    from lra.core.protocol import Rules
    from lra.core.scales import Scale


@click.command("prepare", short_help="Make a set ahead of runs, from a real source or generated.")
@click.argument("task", required=False, metavar="[TASK]")
@click.option(
    "--from",
    "source",
    metavar="PATH|hub",
    help="A file, a folder, hub (the task's usual set) or hub:NAME; without TASK the folder of the "
    "Long Range Arena release. Default: the task's generator.",
)
@click.option(
    "--out",
    type=flags.Folder(Path),
    metavar="FOLDER",
    help="Folder for the prepared real set; for a release, one sub-folder per task. Default: "
    "prepared/TASK in the cache.",
)
@options.option(RunSpec, "scale", default="compact", help=options.DATA_SCALE)
@options.option(RunSpec, "rules")
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    metavar="N",
    help="Processes that make generated rows; default: as many as the cores allow.",
)
def command(
    task: str | None,
    source: str | None,
    out: Path | None,
    scale: str,
    rules: Rules | None,
    jobs: int | None,
) -> int:
    """Make a set ahead of the runs that use it.

    \b
    python -m lra data prepare text --from hub
    python -m lra data prepare retrieval --from lra_release/tsv_data
    python -m lra data prepare --from lra_release
    python -m lra data prepare path_x --scale compact

    With --from all rows of a real source are read once, uncut, and kept as Arrow files; the scale
    gives what cannot be cut later, such as the number of pixels. Without it the generated set of
    the scale is made where a run will find it. Stopped or killed, the same command goes on where it
    was.
    """
    from lra.cli.release import for_each_set
    from lra.core import catalogue
    from lra.core.errors import UsageError
    from lra.core.scales import load_scale
    from lra.engine.machine.host import cache_folder

    settings = load_scale(scale)
    if task is None and source is None:
        raise UsageError("prepare needs a task, or --from with a release; e.g. text")
    if out is not None and source is None:
        raise UsageError("--out is for --from: runs look for generated sets in the cache")
    if jobs is not None and source is not None:
        raise UsageError("--jobs is for generated sets; leave it out with --from")

    prepared = out or cache_folder() / "prepared"

    def prepare(name: str, set_folder: Path) -> int:
        target = catalogue.find("task", name)
        _prepare(target, settings, rules, str(set_folder), prepared / name)
        return 0

    try:
        if task is None:
            assert source is not None
            return for_each_set(source, prepare)
        target = catalogue.find("task", task)
        if source is None:
            _generate(target, settings, rules, jobs)
        else:
            _prepare(target, settings, rules, source, out or prepared / target.name)
        return 0
    except KeyboardInterrupt:
        echo("lra: interrupted; whole parts are kept, run again to go on", err=True)
        return INTERRUPTED


def _generate(target: Target, scale: Scale, rules: Rules | None, jobs: int | None) -> None:
    from lra.cli.data_progress import show_progress
    from lra.engine.machine.host import cache_folder, cores_allowed
    from lra.engine.plan.data import data_spec
    from lra.engine.plan.describe import Describer
    from tasks.sources.data_hash import prepared_name
    from tasks.sources.parallel import generate

    cache = cache_folder()
    spec = data_spec(target, scale, Describer(cache), None, rules)
    folder = cache / prepared_name(target.file, spec)
    note = f"makes the rows of scale {scale.name}; --from PATH prepares real ones"
    echo(f"{target.name}: {note}", err=True)
    with closing(show_progress(target.name)) as watch:
        made = generate(target.reference, spec, folder, jobs or cores_allowed(), watch)
    done = "generated" if made else "was generated already"
    echo(f"{target.name}: {done}, {_describe(folder)}")
    echo(f"runs at scale {scale.name} find it; it lies in {folder}")


def _prepare(target: Target, scale: Scale, rules: Rules | None, source: str, folder: Path) -> None:
    from lra.cli.data_progress import name_task_errors, show_progress
    from lra.core.paths import real_path
    from lra.engine.plan.data import task_of
    from tasks.sources.files import expanded, resolved
    from tasks.sources.whole_sets import prepare_whole

    task = task_of(target, scale, rules)
    source = resolved(source, target.name, task.hub)
    folder = real_path(expanded(folder))
    echo(f"{target.name}: looks at what '{source}' holds", err=True)
    with name_task_errors(target), closing(show_progress(target.name)) as watch:
        made = prepare_whole(task, target.name, target.file, source, folder, watch)
    echo(f"{target.name}: {'prepared' if made else 'was prepared already'}, {_describe(folder)}")
    echo(f"use it with: --data {target.name}={folder}")


def _describe(folder: Path) -> str:
    from lra.report.words import quantity
    from tasks.sources.facts import read_facts

    facts = read_facts(folder)
    rows = ", ".join(f"{number:,} {split}" for split, number in facts.rows.items())
    size = quantity(sum(facts.bytes.values()), "B")
    return f"{rows}; longest {facts.length:,} tokens; {size}"
