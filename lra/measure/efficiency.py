"""One efficiency cell: its measurements, pass by pass.

First the first call of the process; then peak memory, while the process has done little else; then
time, framed by the control; last the passes that would disturb the others: energy, which runs for
seconds, and the counts of operations and of live tensors, which watch every call that torch makes.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import nn

from attention_impls.contract import Layer, MechanismConfig
from lra.core.cards import TaskCard
from lra.core.cells import EfficiencyCell
from lra.core.records import Metric
from lra.measure import calls, compiled, memory, step
from lra.measure.control import SIZE, measure_control
from lra.measure.decode import prepare_decode
from lra.measure.energy import measure_energy
from lra.measure.generation import prepare_generation
from lra.measure.latency import HostStopwatch, Stopwatch, cuda_stopwatch, measure_latency
from lra.measure.live_tensors import tensor_peak
from lra.measure.nvml import Board, board
from lra.measure.operations import count_operations, declared_operations
from lra.training.setup import Network

PREFILL_SHARE = 0.5
"""Share of the time budget for taking in the prompt."""


ENERGY_SHARE = 2.0
"""Share of the time budget for the window of energy."""


@dataclass(frozen=True)
class Efficiency:
    """Metrics, number of parameters and method of one efficiency cell."""

    metrics: dict[str, Metric]
    parameters: int
    method: dict[str, Any]


@dataclass(frozen=True)
class ModelContext:
    """The mechanisms of a whole model, and its task, for cells that time one."""

    network: Network
    task: TaskCard


@dataclass(frozen=True)
class _Subject:
    """The timed call and its module."""

    call: Callable[[], object]
    module: nn.Module
    between: Callable[[], object] = lambda: None
    prefill: Callable[[], object] | None = None
    found: dict[str, Metric] = field(default_factory=dict)


def measure_efficiency(
    cell: EfficiencyCell,
    mechanism: type[Layer],
    config: MechanismConfig,
    around: ModelContext | None = None,
    *,
    report: Callable[[str], None] = lambda phase: None,
) -> Efficiency:
    """Measure one mechanism at one length; raises `UnsupportedError` for a request outside its
    card.

    `around` is for cells of level `model`.
    """
    with compiled.empty_caches(cell):
        return _measure(cell, mechanism, config, around, report)


def _measure(
    cell: EfficiencyCell,
    mechanism: type[Layer],
    config: MechanismConfig,
    around: ModelContext | None,
    report: Callable[[str], None],
) -> Efficiency:
    device = torch.device(cell.device)
    stopwatch, wall = _stopwatches(device)
    found = board(device)
    held_down: set[str] = set()

    def watch() -> None:
        if not isinstance(found, str):
            held_down.update(found.throttled())

    report("build")
    subject = _build(cell, mechanism, config, around, device)
    call, between = subject.call, subject.between
    metrics = dict(subject.found)
    if cell.mode != "decode":
        # Decoding has taken in a prompt and checked a step by now.
        report("first call")
        (first,) = wall.time(call, 1, between)
        between()
        metrics["first_call"] = Metric(value=first, unit="s", better="lower")
        if cell.execution == "compiled":
            (second,) = wall.time(call, 1, between)
            between()
            metrics["compile_time"] = Metric(value=first - second, unit="s", better="lower")
    report("memory")
    metrics |= memory.measure_memory(call, device, between=between)
    report("control")
    before, state_before = measure_control(device, stopwatch), _state(found)
    report("time")
    timed = partial(measure_latency, after_block=watch)
    latency = timed(call, stopwatch, seconds=cell.seconds, between=between)
    metrics["latency"] = latency.metric()
    if device.type == "cuda":
        walled = timed(call, wall, seconds=cell.seconds, between=between)
        metrics["latency_wall"] = walled.metric()
    if subject.prefill is not None:
        seconds = PREFILL_SHARE * cell.seconds
        metrics["prefill"] = timed(subject.prefill, stopwatch, seconds=seconds).metric()
    report("control")
    metrics["control_before"] = before.metric()
    metrics["control_after"] = measure_control(device, stopwatch).metric()
    state_after = _state(found)
    report("energy")
    metrics |= measure_energy(
        call,
        found,
        synchronize=lambda: _synchronize(device),
        between=between,
        seconds=ENERGY_SHARE * cell.seconds,
    )
    report("operations")
    with compiled.forced_eager(cell.execution):
        metrics["operations"] = _operations(call, between)
    between()
    metrics["declared_operations"] = declared_operations(cell, subject.module)
    if device.type == "cpu":
        peak = tensor_peak(call, between=between)
        metrics["peak_tensor_bytes"] = Metric(value=float(peak), unit="B", better="lower")
    return Efficiency(
        metrics=metrics,
        parameters=sum(p.numel() for p in subject.module.parameters() if p.requires_grad),
        method={
            "timer": stopwatch.name,
            **({"timer_wall": wall.name} if device.type == "cuda" else {}),
            "timed_region": _region(cell),
            "warmup_calls": latency.warmup_calls,
            "steady": latency.steady,
            "memory": memory.memory_method(device),
            "control": f"product of two {SIZE[device.type]} x {SIZE[device.type]} float32 matrices",
            "inputs": "N(0, 1) or random tokens, made off the clock",
            "garbage_collection": "before, never inside",
            "compile": compiled.describe_execution(cell),
            "declared_time": mechanism.card.time,
            "declared_memory": mechanism.card.memory,
            "threads": torch.get_num_threads(),
            **_clocks(state_before, state_after, held_down),
        },
    )


def _build(
    cell: EfficiencyCell,
    mechanism: type[Layer],
    config: MechanismConfig,
    around: ModelContext | None,
    device: torch.device,
) -> _Subject:
    if cell.model is None or cell.model.body != "encoder_decoder":
        # In an encoder-decoder it depends on the slot which directions a mechanism has to have.
        calls.refuse_direction(cell, mechanism)
    if cell.level == "model":
        assert around is not None, "a model needs more than a mechanism"
        model = step.build(cell, around.network, around.task).to(device)
        if cell.mode == "decode":
            generating = prepare_generation(cell, model, around.task, device)
            return _Subject(
                generating.step, model, prefill=generating.prefill, found=generating.metrics()
            )
        call, between = step.prepare_step(cell, model, around.task, device)
        return _Subject(call, model, between)
    layer = calls.build_layer(cell, mechanism, config).to(device)
    if cell.mode == "decode":
        decoding = prepare_decode(cell, layer, device)
        return _Subject(decoding.step, layer, prefill=decoding.prefill, found=decoding.metrics())
    call, between = calls.prepare_call(cell, layer, device)
    moved = Metric(value=float(calls.minimum_bytes(cell, layer)), unit="B", better="lower")
    return _Subject(call, layer, between, found={"minimum_bytes": moved})


def _operations(call: Callable[[], object], between: Callable[[], object]) -> Metric:
    """Return the counted operations of a call; None where counting fails, so that no measured time
    is lost."""
    value, why = None, None
    try:
        value = float(count_operations(call, between=between))
    except Exception as error:
        traceback.print_exc()
        why = f"counting raised {type(error).__name__}"
    return Metric(value=value, unit="count", better="lower", why_null=why)


def _region(cell: EfficiencyCell) -> str:
    if cell.mode == "decode" and cell.level == "model":
        return (
            "one token more through the decoder to the most likely next one, under no_grad, from "
            "the states after a target of the length; a source has the length too"
        )
    if cell.mode == "decode":
        return "one position more, under no_grad, from the state after a prompt of the length"
    if cell.mode == "forward":
        return "one forward pass under no_grad, in evaluation mode"
    if cell.level == "model":
        return "one training step: loss, gradients, AdamW"
    return (
        "one forward and one backward pass down to inputs and parameters, in training mode; "
        "gradients are cleared between calls, off the clock"
    )


def _stopwatches(device: torch.device) -> tuple[Stopwatch, HostStopwatch]:
    """Return the device's own clock, and the host's."""
    if device.type == "cpu":
        return HostStopwatch(), HostStopwatch()
    stopwatch = cuda_stopwatch(device)
    return stopwatch, stopwatch.on_host()


def _clocks(before: dict[str, Any], after: dict[str, Any], held_down: set[str]) -> dict[str, Any]:
    """Return the board's state before and after timing, and all reasons that held its clocks down
    then."""
    if not before:
        return {}
    found: dict[str, Any] = {"board_before": before, "board_after": after}
    if "throttled_by" in before:
        around = (*before["throttled_by"], *after.get("throttled_by", ()))
        found["throttled_by"] = sorted(held_down.union(around))
    return found


def _state(found: Board | str) -> dict[str, Any]:
    """Return the state of a board: clocks, temperature and the reasons that hold them down; {} for
    none."""
    return {} if isinstance(found, str) else found.state()


def _synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
