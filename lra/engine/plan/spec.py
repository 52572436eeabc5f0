"""Specifications: a frozen value for each verb, with the options of the command line as fields.

Light to import, since `--help` reads them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import msgspec

from lra.core.cells import Device, Direction, Dtype, Execution, Level, Mode
from lra.core.findings import Case
from lra.core.options import Option, Seconds
from lra.core.protocol import Body, Frozen, Machine, Repeats, Rules, SlotName, Track
from lra.core.scales import Suite
from lra.engine.machine.host import cache_folder, default_device, machine

DEFAULT_STORE = Path("results/runs/default")
CHECK_STORE = Path("results/runs/check")
DEFAULT_BASELINES = Path("results/baselines")

FEWEST, USUAL, MOST = 3, 5, 12
"""Processes of each cell in each of the two sweeps of a self-test."""

Rerun = Literal["missing", "failed", "disturbed", "all"]

_REFERENCES = "names, wildcards, 'all', package.module:Class or file.py:Class."
_SET = "A mechanism's setting: features=64, or performer.features=64 for one of several"

Counted = Annotated[int, msgspec.Meta(ge=1)]

Mechanisms = Annotated[
    tuple[str, ...],
    Option(f"Mechanisms: {_REFERENCES}", "--impl", "NAME[,NAME...]", "mechanism"),
]
"""References that `lra.core.catalogue.expand` understands."""
OnDevice = Annotated[
    Device, Option("Where to compute. Default: cuda if present, else cpu.", "--device")
]
Store = Annotated[Path, Option("Folder of records.")]
Jobs = Annotated[
    Counted | None,
    Option("Cells side by side; default: as many as the cores allow, on a GPU one.", metavar="N"),
]
Quiet = Annotated[bool, Option("Print only results and what went wrong.")]
AsJson = Annotated[bool, Option("Print JSON.", "--json")]
Baselines = Annotated[Path, Option("Folder of baselines, a folder for each class of machine.")]
RulesOption = Annotated[
    Rules | None, Option("Rules of the tasks; lra2021 repeats the original's choices.")
]


def _cache() -> str:
    return str(cache_folder())


class RunSpec(Frozen, frozen=True, kw_only=True):
    """The cells of a run or a sweep."""

    mechanisms: Mechanisms = ()
    tasks: Annotated[
        tuple[str, ...], Option(f"Tasks: {_REFERENCES}", "--task", "NAME[,NAME...]", "task")
    ] = ()
    """Tasks that replace the suite's; () keeps them."""
    suite: Annotated[
        Suite,
        Option("Selection of cells: a name or a TOML file.", "", "NAME", "suite", default="mini"),
    ]
    scale: Annotated[
        str | None,
        Option(
            "Protocol of the trainings: a name or a TOML file. Default: the suite's own.",
            metavar="NAME",
            names="scale",
        ),
    ] = None
    """Scale of the trainings that replaces the suite's."""
    rules: RulesOption = None
    track: Annotated[
        Track, Option("tuned: try the scale's learning rates, keep what validates best.")
    ] = "matched"
    seeds: Annotated[
        Repeats | None,
        Option(
            "Trainings of each mechanism on each task, each with its own initialisation, batch "
            "order and random draws; the data stays the same. Default: the suite's.",
            metavar="N",
        ),
    ] = None
    body: Annotated[
        Body | None,
        Option("Network of the tasks asked for. Default: the one that each task needs."),
    ] = None
    preset: Annotated[
        str | None,
        Option(
            "Published model whose form and positions the network has: "
            "gpt2, bart, t5 and others, see list presets.",
            metavar="NAME",
            names="preset",
        ),
    ] = None
    slots: Annotated[
        dict[SlotName, str],
        Option(
            "Mechanism of a slot of an encoder-decoder: encoder, decoder or cross. In those that "
            "are not named stand the mechanisms of --impl.",
            "--slot",
        ),
    ] = {}
    device: OnDevice = msgspec.field(default_factory=default_device)
    devices: Annotated[
        Counted,
        Option(
            "Split each training over N GPUs of this machine (on a CPU, N processes): same "
            "batches, same numbers up to rounding.",
            metavar="N",
        ),
    ] = 1
    settings: Annotated[
        dict[str, str],
        Option(f"{_SET}; of trainings also training.steps=200, model.layers=1.", "--set"),
    ] = {}
    """Overrides of fields; see `lra.engine.plan.settings`."""
    sources: Annotated[
        dict[str, str],
        Option(
            "Real data of a task: a file, a folder, a prepared set, hub or hub:NAME. Default: its "
            "generator.",
            "--data",
        ),
    ] = {}
    """Real data by task: a path or `hub:NAME`."""
    baselines: Annotated[
        bool,
        Option("Train exact attention and the controls too, instead of showing reference rows."),
    ] = False
    profile: Annotated[
        bool,
        Option("Say where a training step's time goes, on each task, instead of training."),
    ] = False
    machines: dict[str, Machine] = {}
    """Class of machine by device, where cells run elsewhere; {} means this machine."""
    edits: dict[str, str] = {}
    """Hash of each file that was edited and not checked; cells that may depend on it are kept apart
    from those of committed code."""
    cache: str = msgspec.field(default_factory=_cache)

    def machine(self, device: Device) -> Machine:
        """Return the class of the machine that runs cells on a device."""
        return self.machines[device] if self.machines else machine(device)


class AxesSpec(Frozen, frozen=True, kw_only=True):
    """Axes of a sweep that replace the suite's own values; an empty one keeps them."""

    lengths: Annotated[
        tuple[int, ...],
        Option(
            "Sequence lengths; a..b doubles from a to b. E.g. 256..8192.", "--length", "N[,N...]"
        ),
    ] = ()
    batches: Annotated[
        tuple[int, ...], Option("Examples in a call. E.g. 1,4.", "--batch", "N[,N...]")
    ] = ()
    heads: Annotated[
        tuple[int, ...], Option("Heads of a layer. E.g. 4,8.", "--heads", "N[,N...]")
    ] = ()
    head_widths: Annotated[
        tuple[int, ...], Option("Width of a head. E.g. 32,64.", "--head-width", "N[,N...]")
    ] = ()
    modes: Annotated[tuple[Mode, ...], Option("Calls that are timed.", "--mode")] = ()
    levels: Annotated[tuple[Level, ...], Option("How much of a model is timed.", "--level")] = ()
    directions: Annotated[
        tuple[Direction, ...], Option("Who may attend to whom.", "--direction")
    ] = ()
    dtypes: Annotated[tuple[Dtype, ...], Option("Type of parameters and inputs.", "--dtype")] = ()
    executions: Annotated[
        tuple[Execution, ...], Option("As written, or by torch.compile.", "--execution")
    ] = ()
    replicates: Annotated[
        Repeats | None,
        Option(
            "Processes for each cell, in rounds over all of them. Default: the suite's.",
            metavar="N",
        ),
    ] = None


class ExecutionSpec(Frozen, frozen=True, kw_only=True):
    """Execution of a run's cells: place, selection and limits."""

    store: Store = DEFAULT_STORE
    device: Annotated[
        Device | None, Option("Where to compute. Default: cuda if present, else cpu.")
    ] = None
    """Device of the cells; None takes the default of this machine, or of a cluster's workers."""
    jobs: Jobs = None
    cluster: Annotated[
        str | None,
        Option(
            "Run cells on Dask workers: local:N on this machine, tcp://HOST:PORT of a scheduler, "
            "or a TOML file for Slurm and its like.",
            metavar="WHERE",
        ),
    ] = None
    rerun: Annotated[
        Rerun,
        Option(
            "Which cells to run; a record makes a cell not missing. disturbed: timings taken while "
            "the machine was busy or throttled."
        ),
    ] = "missing"
    budget: Annotated[
        Seconds | None,
        Option(
            "Stop cleanly after e.g. 90s (or 90), 9m, 1h30m; a rerun continues. Missing cells "
            "run in the order of their value: begun ones; first seeds before second ones; "
            "baselines, then sdpa and identity; the shortest. A cell that cannot be continued "
            "starts only where it fits."
        ),
    ] = None
    timeout: Annotated[Seconds | None, Option("Longest time for one cell.")] = None
    prune: Annotated[
        bool,
        Option("Try lengths beyond one that ran out of memory or time, too.", "--no-prune"),
    ] = True
    offline: Annotated[bool, Option("Never ask a data hub.")] = False
    dry_run: Annotated[bool, Option("Print the cells, about how long they take, and stop.")] = False
    quiet: Quiet = False
    as_json: AsJson = False


class VerifySpec(Frozen, frozen=True, kw_only=True):
    """Claims to try, and the thoroughness of the trial."""

    mechanisms: Mechanisms = ()
    laws: Annotated[
        tuple[str, ...],
        Option("Laws to try; default: all of the form.", "--check", "LAW[,LAW...]"),
    ] = ()
    case: Annotated[
        Case | None, Option("The only input to try, e.g. 'n=5 causal'.", metavar="TEXT")
    ] = None
    full: Annotated[bool, Option("Longer inputs, and laws that take minutes.")] = False
    settings: Annotated[
        dict[str, str], Option(f"{_SET}; of your own class also cross=false.", "--set")
    ] = {}
    device: OnDevice = msgspec.field(default_factory=default_device)
    cache: str = msgspec.field(default_factory=_cache)


class ShowSpec(Frozen, frozen=True, kw_only=True):
    """Pictures to draw of mechanisms."""

    mechanisms: Mechanisms = ()
    length: Annotated[int | None, Option("Positions to draw; default: 64.", metavar="N")] = None
    input: Annotated[
        str | None,
        Option(
            "The input, a .npy file of shape (positions, features); default: seeded normal "
            "numbers.",
            metavar="FILE",
        ),
    ] = None
    """File of the input, which has a length of its own."""
    direction: Annotated[
        Direction | None, Option("Default: bidirectional where the mechanism can.")
    ] = None
    heads: Annotated[
        Counted,
        Option("Heads of the layer; the weights of each are drawn.", metavar="N"),
    ] = 4
    head_width: Annotated[Counted, Option("Width of a query or key in one head.", metavar="N")] = 16
    scale: Annotated[
        str,
        Option(
            "Scale whose settings of mechanisms are used; 'picture' has windows and blocks small "
            "enough to see at 64 positions.",
            metavar="NAME",
            names="scale",
        ),
    ] = "picture"
    settings: Annotated[dict[str, str], Option(f"{_SET}.", "--set")] = {}
    cache: str = msgspec.field(default_factory=_cache)


class OutputSpec(Frozen, frozen=True, kw_only=True):
    """Store and output of a verb that takes seconds."""

    store: Store = DEFAULT_STORE
    jobs: Jobs = None
    quiet: Quiet = False
    as_json: AsJson = False


class CheckSpec(Frozen, frozen=True, kw_only=True):
    """Figures that a check compares, and their baseline."""

    mechanisms: Mechanisms = ()
    since: Annotated[
        str | None,
        Option(
            "Check only mechanisms that changes since REVISION affect (through imports), and time "
            "them against it. Default: all, timed against the last commit.",
            metavar="REVISION",
        ),
    ] = None
    deterministic: Annotated[bool, Option("Only what has no noise; no timing.")] = False
    quick: Annotated[bool, Option("A few mechanisms and pairs, in five minutes.")] = False
    device: OnDevice = msgspec.field(default_factory=default_device)
    store: Annotated[Path, Option("Folder for the records of the check.")] = CHECK_STORE
    baselines: Baselines = DEFAULT_BASELINES
    edits: dict[str, str] = {}
    """Unchecked edits, as in `RunSpec`."""
