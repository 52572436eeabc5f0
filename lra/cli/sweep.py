"""`lra sweep`: time, memory and errors over lengths and other axes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from lra.cli import axes, flags
from lra.core.protocol import REPEATS

if TYPE_CHECKING:
    from lra.core.cells import Device


@click.command("sweep", short_help="Time, memory and errors over lengths and other axes.")
@flags.impl
@flags.suite("sweep")
@axes.axes
@click.option(
    "--replicates",
    type=click.IntRange(1, REPEATS),
    metavar="N",
    help="Processes for each cell, in rounds over all of them. Default: the suite's.",
)
@click.option(
    "--no-prune",
    is_flag=True,
    help="Try lengths beyond one that ran out of memory or time, too.",
)
@flags.device
@flags.settings()
@flags.store
@flags.cluster
@flags.carried_out(timeout="30m")
def command(
    impls: tuple[str, ...],
    suite: str,
    replicates: int | None,
    no_prune: bool,
    device: Device | None,
    settings: tuple[str, ...],
    store: Path,
    cluster: str | None,
    rerun: Literal["missing", "failed", "disturbed", "all"],
    budget: str | None,
    timeout: str | None,
    dry_run: bool,
    quiet: bool,
    as_json: bool,
    **given: tuple[str, ...],
) -> int:
    """Measure mechanisms beside exact attention and no mixing, at every combination of the axes.

    A flag takes the place of the suite's own values; every cell has a process of its own. The suite
    error measures approximations of softmax attention: how far they are from it. The suite peers
    measures mechanisms beside public implementations of them; table2 is LRA's table of speed.

    \b
    python -m lra sweep --impl performer,linear --length 256..16384
    python -m lra sweep --impl all --mode train --batch 1,8 --dtype bfloat16
    python -m lra sweep --impl performer,nystromformer --suite error
    python -m lra sweep --impl bigbird --suite peers
    """
    import msgspec

    from lra.cli.execute import execute
    from lra.core.errors import UsageError
    from lra.core.scales import load_suite
    from lra.engine.machine.host import cache_folder, default_device
    from lra.engine.plan.planner import RunSpec

    flags.require_impl(impls, "sweep", "performer")
    asked: dict[str, Any] = dict(axes.overrides(given))
    if replicates is not None:
        asked["replicates"] = replicates
    whole = load_suite(suite)
    if not whole.efficiency and not whole.error:
        raise UsageError(
            f"suite '{whole.name}' measures neither time nor errors; give it an [[efficiency]] or "
            "an [[error]] block"
        )
    axes.refuse_unknown_axes(asked, [*whole.efficiency, *whole.error], whole.name)
    spec = RunSpec(
        suite=msgspec.structs.replace(
            whole,
            quality=(),
            efficiency=tuple(axes.replace_axes(block, asked) for block in whole.efficiency),
            error=tuple(axes.replace_axes(block, asked) for block in whole.error),
        ),
        mechanisms=impls,
        settings=flags.pairs(settings, "--set"),
        device=device or default_device(),
        cache=str(cache_folder()),
    )
    return execute(
        spec,
        store=store,
        rerun=rerun,
        budget=flags.seconds(budget, "--budget"),
        timeout=flags.seconds(timeout, "--timeout"),
        jobs_asked=None,
        cluster=cluster,
        device=device,
        dry_run=dry_run,
        quiet=quiet,
        as_json=as_json,
        prune=not no_prune,
    )
