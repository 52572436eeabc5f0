"""`lra sweep`: time, memory and errors over lengths and other axes."""

from __future__ import annotations

import click
import msgspec

from lra.cli import options
from lra.engine.plan.spec import AxesSpec, ExecutionSpec, RunSpec


@click.command("sweep", short_help="Time, memory and errors over lengths and other axes.")
@options.takes(RunSpec, "mechanisms", "suite", "settings", suite="sweep")
@options.takes(AxesSpec)
@options.takes(ExecutionSpec, without=("jobs", "offline"), timeout="30m")
def command(spec: RunSpec, axes: AxesSpec, how: ExecutionSpec) -> int:
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
    from lra.cli.execute import execute
    from lra.engine.plan.axes import along

    options.require_mechanism(spec.mechanisms, "sweep", "performer")
    return execute(msgspec.structs.replace(spec, suite=along(spec.suite, axes)), how)
