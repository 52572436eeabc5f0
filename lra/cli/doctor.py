"""`lra doctor`: the state of the installation, and the figures that this machine can measure."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lra.cli import flags, options
from lra.cli.echo import echo, echo_json
from lra.cli.exit_codes import FAILED_CELLS, INCONCLUSIVE
from lra.engine.plan.spec import FEWEST, MOST, USUAL, OutputSpec

if TYPE_CHECKING:
    from lra.core.cells import Device

SIBLINGS = "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"
"""Where Linux lists the threads that share a core; a virtual machine may have nothing there."""
PATIENCE = 120
"""Seconds that a GPU has for a product of two small matrices, loading torch included."""
TRIAL = """
import torch
try:
    x = torch.ones(2, 2, device="cuda")
    (x @ x).sum().item()
except Exception as error:
    raise SystemExit((str(error).splitlines() or [type(error).__name__])[0])
"""


@click.command("doctor", short_help="Check the installation and this machine.")
@options.option(OutputSpec, "store")
@click.option(
    "--timing",
    is_flag=True,
    help="Time a few cells twice over, in about two minutes, and say what difference this "
    "machine resolves.",
)
@click.option(
    "--replicates",
    type=click.IntRange(FEWEST, MOST),
    metavar="N",
    help=f"With --timing: processes of each cell in each of the two sweeps, {FEWEST} to "
    f"{MOST}. Default: {USUAL}.",
)
@click.option(
    "--device",
    type=flags.Choice(["cpu", "cuda"]),
    help="With --timing: where to time. Default: cuda if present, else cpu.",
)
@click.option("--json", "as_json", is_flag=True, help="With --timing: print JSON.")
def command(
    store: Path,
    timing: bool,
    replicates: int | None,
    device: Device | None,
    as_json: bool,
) -> int:
    """Print what records will say of this machine, and what is missing, with its remedy.

    \b
    python -m lra doctor
    python -m lra doctor --timing --replicates 12

    With --timing the exit code is 3 where a difference of 10 % is not resolved.
    """
    from lra.core.errors import UsageError
    from lra.engine.machine import host

    for flag, given in (("--replicates", replicates), ("--device", device), ("--json", as_json)):
        if given and not timing:
            raise UsageError(f"{flag} belongs to the self-test; give --timing too")
    if not as_json and (code := _check(store)):
        return code
    if not timing:
        return 0
    return _self_test(device or host.default_device(), replicates or USUAL, as_json=as_json)


def _self_test(device: Device, replicates: int, *, as_json: bool) -> int:
    """Run the self-test, print its result, and return the exit code."""
    from lra.cli.progress import watcher
    from lra.engine.gate import self_test
    from lra.report.words import count

    records = self_test.measure(device, 2 * replicates, lambda due: watcher(due, quiet=False))
    if failed := [record for record in records if record.status != "ok"]:
        echo(f"{count(len(failed), 'cell')} failed; no self-test without them", err=True)
        return FAILED_CELLS
    test = self_test.judge(records)
    if as_json:
        echo_json(self_test.plain(test), indented=True)
    else:
        for line in self_test.lines(test):
            echo(line)
    return 0 if test.found.resolves else INCONCLUSIVE


def _check(store: Path) -> int:
    """Print the installation and its problems; return the exit code."""
    from lra.core.errors import UsageError
    from lra.engine.machine import host
    from lra.engine.machine.provenance import library_version
    from lra.report.words import count

    machine = host.machine(host.default_device())
    echo(f"machine    {machine.processor}, {machine.cores} cores allowed ({machine.name})")
    memory = host.memory_bytes()
    echo(f"memory     {'unknown' if memory is None else f'{memory / 2**30:.1f} GiB'}")
    cards = host.gpus()
    echo(f"gpu        {cards[0]['name'] if cards else 'none: GPU figures will be empty'}")
    for name in ("torch", "numpy", "datasets", "pandas", "seaborn", "numba"):
        echo(f"{name:<10} {library_version(name) or 'not installed'}")
    echo(f"cache      {host.cache_folder()}")
    for note in _notes():
        echo(f"note: {note}")
    problems = list(_problems(store, host.cache_folder()))
    for problem in problems:
        echo(f"problem: {problem}")
    echo(count(len(problems), "problem") if problems else "all well")
    return UsageError.exit_code if problems else 0


def _problems(store: Path, cache: Path) -> Iterator[str]:
    """Problems that keep cells from being run or records from being kept, each with its remedy."""
    from lra.core.paths import real_path
    from lra.engine.machine import host

    home = Path(__file__).resolve().parents[2]
    for package in ("tasks", "attention_impls"):
        spec = importlib.util.find_spec(package)
        places = list(spec.submodule_search_locations or []) if spec else []
        if not places:
            yield f"package '{package}' is missing; reinstall the project"
        elif Path(places[0]).resolve().parent != home:
            yield (
                f"package '{package}' is another project's, at {places[0]}; "
                "run from a folder without one, or in a fresh virtual environment"
            )
    if host.default_device() == "cuda" and (why := _why_no_product()) is not None:
        # On this one every cell would be an error.
        yield (
            f"the GPU cannot be used: {why}; update its driver or install a build of torch "
            "that fits it, or run with --device cpu"
        )
    for what, folder in (("store", store), ("cache", cache)):
        place = real_path(folder)
        present = next(p for p in (place, *place.parents) if _exists(p))
        if not present.is_dir():
            yield f"the {what} '{folder}' is or lies below a file, '{present.name}'; choose another"
        elif not os.access(present, os.W_OK | os.X_OK):
            yield f"the {what} '{folder}' cannot be written; mend its permissions or choose another"


def _notes() -> Iterator[str]:
    """Notes on this machine that are no fault: slower code, figures that cannot be measured."""
    from lra.engine.machine import host

    if host.gpus() and host.default_device() != "cuda":
        yield "torch is a CPU-only build, so the GPU cannot be measured"
    yield from _shared_cores()
    if importlib.util.find_spec("numba") is None:
        yield "without numba Pathfinder images are drawn slower; install the extra `fast`"


def _shared_cores() -> Iterator[str]:
    if not hasattr(os, "sched_getaffinity"):
        return
    from lra.report.words import count

    threads = os.sched_getaffinity(0)
    known = [file for thread in threads if (file := Path(SIBLINGS.format(thread))).is_file()]
    cores = {file.read_text().strip() for file in known}
    if len(known) == len(threads) > len(cores):
        yield (
            f"the {len(threads)} processors allowed are threads of "
            f"{count(len(cores), 'core')}, so that each is slower while another works"
        )


def _why_no_product() -> str | None:
    """Compute on the GPU in a process of its own; return why that fails, None where it does not."""
    from lra.engine.process.launch import environment

    try:
        tried = subprocess.run(
            [sys.executable, "-c", TRIAL],
            env=environment(),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
    except subprocess.TimeoutExpired:
        return f"no answer in {PATIENCE} s"
    if tried.returncode == 0:
        return None
    return (tried.stderr.strip().splitlines() or [f"exit code {tried.returncode}"])[-1]


def _exists(place: Path) -> bool:
    """Whether there is such a file or folder, as far as permissions show."""
    try:
        return place.exists()
    except OSError:
        return False
