"""Profile of a training step: the time of whole steps, of their parts and of their operators.

Whole steps come first and run as in a training, waiting for a device only at the ends of a stretch;
their rate is the one to quote. Parts wait for a GPU after each, so that a part has the time of the
kernels that it started; on a GPU the parts add up to more than a step.

    E examples, S = E * inputs sequences
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any

import msgspec
import torch
from torch import nn
from torch.autograd import DeviceType  # type: ignore[attr-defined]
from torch.profiler import ProfilerActivity

from lra.core.dataset import Split
from lra.core.profile_metrics import OPERATOR, PARTS, part_metric
from lra.core.records import Metric
from lra.measure.compiled import forced_eager
from lra.measure.latency import quartiles
from lra.measure.operations import count_operations
from lra.training.batches import evaluation_rows
from lra.training.forward import forward
from lra.training.setup import Training
from lra.training.step import Step

FEW, MANY = 5, 50
"""Smallest and largest number of batches in a stretch."""
STRETCHES = 5
"""Stretches of whole steps, where the time is enough; two at least."""
TOP = 8
"""Number of operators that are named."""
_PROFILED, _PROFILED_SECONDS = 10, 0.5
"""Largest number of steps under torch's profiler, and their seconds without it beyond which fewer
are taken, three at least: its bookkeeping takes longer than the steps."""
_WRAPPER = "autograd::engine::"
"""Prefix of torch's own loop around a node of the graph."""
_COMPILED = "## Call CompiledFxGraph "
"""Prefix of a compiled graph's name, before a hash."""

Clock = Callable[[], float]


@dataclass(frozen=True)
class Profile:
    """Metrics and method of the profile of a training's step."""

    metrics: dict[str, Metric]
    method: dict[str, Any]


def measure_profile(
    model: nn.Module,
    training: Training,
    *,
    device: torch.device,
    seconds: float,
    report: Callable[[str], None] = lambda phase: None,
    clock: Clock = perf_counter,
) -> Profile:
    """Measure the steps of a training's start, without the training.

    `seconds` are for the whole steps. The measured steps train the model. Raises `UnsupportedError`
    for a precision that the device lacks.
    """
    step = Step(model.to(device), training, device=device)
    torch.manual_seed(training.seed)
    step.called.train()
    step.join()
    runs = StepTimer(step, _synchronized(device), clock)
    few = sample_steps(step, FEW)
    report("warm up")
    # Longest first: its compilation and memory are enough for all.
    runs(few[-1:])
    new = _warm_up_batches(step, few)
    first = runs(new) / len(new) if new else None
    runs(few)
    each = runs(few) / len(few)
    batches = sample_steps(step, max(FEW, min(MANY, int(seconds / (STRETCHES * each)))))
    # Plans made anew for a batch of other sizes are no step's usual time; for a CUDA graph they are
    # its first call, and the second, which it records.
    runs(batches)
    runs(batches)
    report("steps")
    whole = [runs(batches) / len(batches)]
    while len(whole) < 2 or (len(whole) < STRETCHES and sum(whole) * len(batches) < seconds):
        whole.append(runs(batches) / len(batches))
    report("parts")
    with time_parts(step, runs.wait, clock) as parts:
        apart = runs(batches) / len(batches)
    report("evaluation")
    row = _row_seconds(step, training.dataset.validation, runs)
    report("operators")
    profiled = _evenly_spread(batches, max(3, min(_PROFILED, int(_PROFILED_SECONDS / each))))
    operators = _operators(runs, profiled, device)
    report("operations")
    with forced_eager(training.spec.execution):
        counted = [count_operations(partial(runs, [one])) for one in few]
    operations = sum(counted) / len(few)
    step_seconds = _median_metric(whole, "s", "lower")
    assert step_seconds.value is not None
    return Profile(
        metrics={
            "step_seconds": step_seconds,
            "steps_per_second": msgspec.structs.replace(
                _median_metric([1.0 / one for one in whole], "1/s", "higher"),
                # For an even number of stretches the median rate would be another.
                value=1.0 / step_seconds.value,
            ),
            "step_in_parts_seconds": _seconds(apart),
            **{part_metric(name): _seconds(total / len(batches)) for name, total in parts.items()},
            "row_seconds": _seconds(row),
            **({} if first is None else {"first_step_seconds": _seconds(first)}),
            **operators,
            "operations": Metric(value=operations, unit="count", better="lower"),
            "padding": Metric(value=padding_share(step), unit="share", better="lower"),
        },
        method={
            "device": device.type,
            "threads": torch.get_num_threads(),
            "execution": training.spec.execution,
            "timer": "perf_counter, synchronised at the ends of a stretch"
            if device.type == "cuda"
            else "perf_counter",
            "batches": f"{len(batches)} of an epoch's {step.order.batches}, evenly spread over "
            "their lengths",
            "stretches": len(whole),
            "operators": f"self time on the {'GPU' if device.type == 'cuda' else 'CPU'} by "
            f"torch.profiler, of {len(profiled)} steps",
        },
    )


class StepTimer:
    """Timer of the steps on some batches of the first epoch, one after another."""

    def __init__(self, step: Step, wait: Callable[[], None], clock: Clock) -> None:
        self.step, self.wait, self.clock = step, wait, clock
        self._loss_sum = torch.zeros((), dtype=torch.float64, device=step.device)

    def __call__(self, batches: Sequence[int]) -> float:
        """Return the seconds of all the steps together."""
        self.wait()
        started = self.clock()
        for done in batches:
            self.step(done, self._loss_sum)
        self.wait()
        return self.clock() - started


def sample_steps(step: Step, most: int) -> list[int]:
    """Return at most `most` of the steps in a training's first epoch, evenly spread over the
    lengths of their batches, shortest first: their mean time is nearly that of all."""
    steps = range(min(step.order.batches, step.spec.steps))
    longest = [step.order.longest_E[step.order.rows(done)].max() for done in steps]
    by_length = sorted(steps, key=longest.__getitem__)
    return _evenly_spread(by_length, most)


def _warm_up_batches(step: Step, batches: Sequence[int]) -> list[int]:
    """The first batch of each length, or pair of lengths, without that of the last batch's."""
    first: dict[tuple[int, ...], int] = {}
    for done in batches:
        first.setdefault(step.collate.lengths(step.order.rows(done)), done)
    del first[step.collate.lengths(step.order.rows(batches[-1]))]
    return list(first.values())


def padding_share(step: Step) -> float:
    """Return the share of padding among the positions that an epoch computes."""
    real = computed = 0
    for done in range(step.order.batches):
        for rows in step.rows(done)[0]:
            lengths_EI, padded = step.collate.lengths_SI[rows], step.collate.lengths(rows)
            real += int(lengths_EI.sum())
            computed += lengths_EI.size // len(padded) * sum(padded)
    return 1.0 - real / computed


@contextmanager
def time_parts(step: Step, wait: Callable[[], None], clock: Clock) -> Iterator[dict[str, float]]:
    """Time each part of the steps made in the context; yields the seconds of each part over all of
    them."""
    seconds = dict.fromkeys(PARTS, 0.0)

    def timed(name: str, part: Callable[..., object]) -> Callable[..., object]:
        def run(*arguments: object) -> object:
            started = clock()
            found = part(*arguments)
            wait()
            seconds[name] += clock() - started
            return found

        return run

    for name in PARTS:
        # Set on the instance, which hides its class: the step itself stays as it is.
        setattr(step, name, timed(name, getattr(step, name)))
    try:
        yield seconds
    finally:
        for name in PARTS:
            delattr(step, name)


def _row_seconds(step: Step, split: Split, runs: StepTimer) -> float:
    """Return the seconds to evaluate one example of the validation split, in batches as in a
    training."""
    collate = step.collate.over(split)
    batches = _evenly_spread(evaluation_rows(split, step.spec.evaluation_batch), FEW)

    def evaluate(rows: Any) -> None:
        batch = collate(rows).to(step.device)
        step.objective.loss(forward(step.called, batch, step.autocast), batch)

    step.called.eval()
    with torch.no_grad():
        # Every validation has the same batches: they are new but once, and recorded but once.
        for rows in [*batches, *batches]:
            evaluate(rows)
        runs.wait()
        started = runs.clock()
        for rows in batches:
            evaluate(rows)
        runs.wait()
        seconds = runs.clock() - started
    step.called.train()
    return seconds / sum(map(len, batches))


def _operators(runs: StepTimer, batches: Sequence[int], device: torch.device) -> dict[str, Metric]:
    """Return the operators with the most self time, in seconds a step; on a GPU also the number of
    kernels."""
    on_gpu = device.type == "cuda"
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if on_gpu else [])]
    with torch.profiler.profile(activities=activities, acc_events=True) as profiler:
        runs(batches)
    events = [
        one
        for one in profiler.key_averages()
        if not one.is_user_annotation and not one.key.startswith(_WRAPPER)
    ]
    called = [one for one in events if one.device_type == DeviceType.CPU]
    kernels = [one for one in events if one.device_type == DeviceType.CUDA]

    def own(event: Any) -> float:
        """Return its self time in seconds a step."""
        total = event.self_device_time_total if on_gpu else event.self_cpu_time_total
        return float(total) / 1e6 / len(batches)

    spent: defaultdict[str, float] = defaultdict(float)
    for one in called:
        compiled = one.key.startswith(_COMPILED)
        spent["compiled graphs" if compiled else one.key.removeprefix("aten::")] += own(one)
    most = sorted(spent, key=spent.__getitem__, reverse=True)[:TOP]
    found = {OPERATOR + name: _seconds(spent[name]) for name in most}
    # On a GPU with the time of kernels that no operator of torch's own has started.
    found["operators_seconds"] = _seconds(sum(map(own, kernels if on_gpu else called)))
    if on_gpu:
        launched = sum(one.count for one in kernels if not one.key.startswith(("Mem", "mem")))
        found["kernels"] = Metric(value=launched / len(batches), unit="count", better="lower")
    return found


def _evenly_spread(items: Sequence[Any], most: int) -> list[Any]:
    """Return the middles of `most` equal parts of a sequence; all of a shorter one."""
    count = min(most, len(items))
    return [items[(2 * n + 1) * len(items) // (2 * count)] for n in range(count)]


def _synchronized(device: torch.device) -> Callable[[], None]:
    if device.type == "cuda":
        return partial(torch.cuda.synchronize, device)
    return lambda: None


def _seconds(value: float) -> Metric:
    return Metric(value=value, unit="s", better="lower")


def _median_metric(samples: Sequence[float], unit: Any, better: Any) -> Metric:
    """Return a metric of stretches: their median and quartiles."""
    q1, median, q3 = quartiles(samples)
    return Metric(
        value=median, unit=unit, better=better, samples=tuple(samples), q1=q1, q3=q3,
        minimum=min(samples),
    )  # fmt: skip
