"""The planner: a suite and a person's flags become cells. Never imports torch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal

import msgspec

from lra.core import catalogue
from lra.core.cards import TaskCard, TaskMetric
from lra.core.catalogue import Target
from lra.core.cells import BaselineCell, CeilingCell, Cell, EfficiencyCell, QualityCell
from lra.core.errors import UsageError
from lra.core.protocol import DataSpec, Frozen, Mechanism, ModelSpec, Rules, Track
from lra.core.scales import EfficiencyBlock, ErrorBlock, QualityBlock, Scale, Suite, load_scale
from lra.engine.describe import Describer
from lra.engine.host import machine
from lra.engine.jobs import Job
from lra.engine.plan_data import by_task, data_spec
from lra.engine.plan_error import approximating, error_cells
from lra.engine.plan_pairs import Subject, paired
from lra.engine.plan_places import places
from lra.engine.provenance import library
from lra.engine.settings import Settings
from lra.engine.sources import measure_hash, mechanism_hash

NO_MIXING = "identity"
EXACT = "sdpa"
_TIMED = "measure/efficiency.py"
_TRAINED = (
    "training/loop.py",
    "training/decoding.py",
    "models/build.py",
    "measure/attended.py",
)
_SCORED = ("measure/baselines.py", "measure/baselines_by_token.py")


class RunSpec(Frozen, frozen=True, kw_only=True):
    """What a person asked for."""

    suite: Suite
    mechanisms: tuple[str, ...]
    """References that `lra.core.catalogue.expand` understands."""
    tasks: tuple[str, ...] = ()
    """In place of the suite's; () keeps them."""
    scale: str | None = None
    """In place of the suite's, for quality."""
    rules: Rules | None = None
    track: Track = "matched"
    seeds: int | None = None
    settings: dict[str, str] = {}
    """`--set`: see `lra.engine.settings`."""
    sources: dict[str, str] = {}
    """Real data by task: a path or `hub:NAME`."""
    device: Literal["cpu", "cuda"]
    baselines: bool = False
    """Plan exact attention and no mixing too, on every task."""
    cache: str


def plan(spec: RunSpec) -> list[Job]:
    """Return the jobs of a run, each cell once: baselines, then quality, then efficiency by length,
    then errors.

    A mechanism that cannot be imported gets its jobs too, which will say why. Raises
    `UsageError` for any name, key or value that does not exist.
    """
    return _Planner(spec).jobs()


class _Planner:
    """What the blocks of one run have in common."""

    def __init__(self, spec: RunSpec) -> None:
        self.spec = spec
        self.torch = library("torch")
        self.machine = machine(spec.device)
        self.describer = Describer(Path(spec.cache))
        self.settings = Settings(spec.settings)
        self.mechanisms = catalogue.expand("mechanism", spec.mechanisms)
        self.unavailable = unavailable(self.mechanisms, self.describer)
        self.tasks = catalogue.expand("task", spec.tasks)

        quality = [task for block in spec.suite.quality for task in self._tasks(block)]
        self.sources = by_task(spec.sources, quality)

    def _tasks(self, block: QualityBlock) -> list[Target]:
        return self.tasks or catalogue.expand("task", block.tasks)

    def jobs(self) -> list[Job]:
        """Return every block's jobs, each cell once, in the order they are run."""
        blocks = self.spec.suite
        found: dict[str, Job] = {}
        for job in (
            *(job for block in blocks.quality for job in self._quality(block)),
            *(job for block in self._timed() for job in self._efficiency(block)),
            *(job for block in blocks.error for job in self._error(block)),
        ):
            found.setdefault(job.cell.id, job)
        self.settings.refuse_unused()
        if not found and blocks.error:
            names = ", ".join(target.name for target in self.mechanisms)
            raise UsageError(
                f"suite '{blocks.name}' compares with softmax attention, and none of these claims "
                f"to come near it: {names or 'no mechanism'}; name what does, e.g. performer"
            )
        if not found and blocks.efficiency:
            others = " or ".join(sorted({str(block.device) for block in blocks.efficiency}))
            raise UsageError(
                f"suite '{blocks.name}' has no block for {self.spec.device}, only for {others}; "
                f"say --device {others}, or give it a block"
            )
        if not found:
            raise UsageError(f"suite '{blocks.name}' has no cells; give it a block")
        return list(found.values())

    def _timed(self) -> list[EfficiencyBlock]:
        """The blocks that are for the run's device."""
        blocks = self.spec.suite.efficiency
        return [block for block in blocks if block.device in (None, self.spec.device)]

    def _quality(self, block: QualityBlock) -> Iterator[Job]:
        scale = _load_scale(self.spec.scale or block.scale)
        tasks = self._tasks(block)
        data = {
            task.name: data_spec(
                task, scale, self.describer, self.sources.get(task.name), self.spec.rules
            )
            for task in tasks
        }
        for task in tasks:
            cell = BaselineCell(
                scale=scale.name,
                machine=machine("cpu"),
                torch=self.torch,
                threads=block.threads,
                measure_hash=measure_hash("baseline", *_SCORED),
                data=data[task.name],
            )
            yield self._job(cell, task=task)
        if block.order != "given":
            data = {name: msgspec.structs.replace(s, order=block.order) for name, s in data.items()}
        for target in self._with(self.spec.baselines, (EXACT, NO_MIXING)):
            if block.only and target.name not in block.only:
                continue
            for task in tasks:
                for seed in range(self.spec.seeds or block.seeds):
                    for rate in self._rates(scale, data[task.name].rules):
                        place = (target, task, data[task.name])
                        yield self._quality_job(scale, block.threads, *place, seed, rate)

    def _quality_job(
        self,
        scale: Scale,
        threads: int,
        target: Target,
        task: Target,
        data: DataSpec,
        seed: int,
        rate: float,
    ) -> Job:
        model = self._model(task, scale)
        training = scale.train_spec(task.name)
        if data.rules == "lra2021":
            # As the original's; and the best by validation would be chosen by test, on Text.
            training = msgspec.structs.replace(training, tested="last")
        training = self.settings.override("training", training)
        if rate != 1.0:
            tried = rate * training.learning_rate
            training = msgspec.structs.replace(training, learning_rate=tried)
        position = catalogue.find("position", model.position)
        cell = QualityCell(
            scale=scale.name,
            machine=self.machine,
            torch=self.torch,
            threads=threads,
            measure_hash=measure_hash("quality", *_TRAINED, outside=(position.file,)),
            mechanism=self._configured(
                "quality", target, scale.settings(target.name, data.rules, task.name)
            ),
            data=data,
            model=model,
            training=training,
            metric=self._metric(task),
            track=self.spec.track,
            seed=seed,
            device=self.spec.device,
        )
        return self._job(cell, mechanism=target, task=task)

    def _efficiency(self, block: EfficiencyBlock) -> Iterator[Job]:
        subjects, scale = self._subjects(block), load_scale(block.scale)
        for dtype in block.dtypes if block.ceilings else ():
            if (self.spec.device, dtype) == ("cpu", "float16"):
                # Where it has no units for halves one large product takes a minute.
                continue
            ceiling = CeilingCell(
                machine=self.machine,
                torch=self.torch,
                threads=self.machine.cores,
                measure_hash=measure_hash("ceiling", "measure/ceilings.py"),
                dtype=dtype,
                device=self.spec.device,
            )
            yield self._job(ceiling)
        for place in places(block):
            task = catalogue.find("task", block.task) if place["level"] == "model" else None
            place["measure_hash"] = measure_hash("efficiency", _TIMED)
            if task is not None:
                place |= self._whole(task, scale, causal=place["direction"] == "causal")
            # A layer by itself is timed with the paper's hyper-parameters, not with the scale's.
            fitted = scale.mechanisms if place["level"] == "model" else {}
            for target, chosen in subjects:
                settings = {**fitted.get(target.name, {}), **chosen}
                cell = EfficiencyCell(
                    scale=scale.name,
                    machine=self.machine,
                    torch=self.torch,
                    threads=self.machine.cores,
                    mechanism=self._configured("efficiency", target, settings),
                    declared_hash=self._declared_hash(target, place),
                    device=self.spec.device,
                    seconds=block.seconds,
                    **place,
                )
                yield self._job(cell, mechanism=target, task=task)

    def _subjects(self, block: EfficiencyBlock) -> list[Subject]:
        """What is measured, with the settings that the suite chooses."""
        suite = self.spec.suite
        if not suite.pairs:
            return [(target, {}) for target in self._with(True, block.beside)]
        pairs = paired(suite, self.mechanisms)
        self.unavailable |= {
            target.name: words
            for target, _ in pairs
            if (words := self.describer.describe(target).unavailable) is not None
        }
        return [(catalogue.find("mechanism", name), {}) for name in block.beside] + pairs

    def _error(self, block: ErrorBlock) -> Iterator[Job]:
        load_scale(block.scale)
        targets = approximating(self.mechanisms, self.describer)
        for target, cell in error_cells(
            block,
            targets,
            partial(self._configured, "error"),
            machine=self.machine,
            torch=self.torch,
            device=self.spec.device,
        ):
            yield self._job(cell, mechanism=target)

    def _whole(self, task: Target, scale: Scale, *, causal: bool) -> dict[str, Any]:
        """What a cell of level `model` says beside its place on the axes; sizes are the scale's."""
        model = self._model(task, scale)
        model = msgspec.structs.replace(model, causal=causal or model.causal)
        card = self.describer.describe(task).card
        found = measure_hash(
            "efficiency",
            _TIMED,
            outside=(catalogue.find("position", model.position).file,),
            # No more of its task is timed than the sizes of embedding and head.
            values=(card.vocabulary, card.classes, card.inputs)
            if isinstance(card, TaskCard)
            else (),
        )
        sizes = {"heads": model.heads, "head_width": model.qkv_width // model.heads}
        return {"task": task.name, "model": model, "measure_hash": found, **sizes}

    def _model(self, task: Target, scale: Scale) -> ModelSpec:
        """The network for a task: causal, and answering at each token, where the task asks so."""
        model = self.settings.override("model", scale.model_spec(task.name))
        card = self.describer.describe(task).card
        if isinstance(card, TaskCard) and card.asks == "token":
            return model.by_token()
        return model

    def _rates(self, scale: Scale, rules: Rules) -> tuple[float, ...]:
        """Multiples of a task's learning rate that are tried."""
        if self.spec.track == "matched":
            return (1.0,)
        if rules == "lra2021":
            raise UsageError(
                "the tuned track chooses by validation, which under the rules lra2021 is the test "
                "split of text; say --rules fixed, or leave --track tuned out"
            )
        if not scale.rates:
            raise UsageError(
                f"scale '{scale.name}' has no learning rates to try; add e.g. "
                "rates = [0.3, 1.0, 3.0], or leave --track tuned out"
            )
        return scale.rates

    def _metric(self, task: Target) -> TaskMetric:
        card = self.describer.describe(task).card
        return card.metric if isinstance(card, TaskCard) else "accuracy"

    def _with(self, wanted: bool, beside: Iterable[str]) -> list[Target]:
        """The asked-for mechanisms, preceded by those measured beside them."""
        extra = [catalogue.find("mechanism", name) for name in beside] if wanted else []
        return list({target.name: target for target in (*extra, *self.mechanisms)}.values())

    def _configured(self, kind: str, target: Target, chosen: Mapping[str, Any]) -> Mechanism:
        """For a kind of cell, with what the run's files choose; what a person sets comes before
        that."""
        description = self.describer.describe(target)
        config = self.settings.configure(
            target, description, asked_for=target in self.mechanisms, scale=chosen
        )
        found = mechanism_hash(target, description, kind)
        return Mechanism(name=target.name, config=config, hash=found)

    def _declared_hash(self, target: Target, place: Mapping[str, Any]) -> str:
        """The hash of what a cell's record repeats of the operations that a mechanism declares."""
        if (place["level"], place["mode"]) != ("layer", "forward"):
            return ""
        return mechanism_hash(target, self.describer.describe(target), "operations")

    def _job(
        self,
        cell: Cell,
        *,
        mechanism: Target | None = None,
        task: Target | None = None,
    ) -> Job:
        return Job(
            cell=cell,
            mechanism="" if mechanism is None else mechanism.reference,
            unavailable=self.unavailable.get(mechanism.name, "") if mechanism else "",
            task="" if task is None else task.reference,
            source=None if task is None else self.sources.get(task.name),
            cache=self.spec.cache,
        )


def _load_scale(reference: str) -> Scale:
    """Read a scale and refuse settings of a mechanism that does not exist."""
    scale = load_scale(reference)
    by_task = [name for task in scale.tasks.values() for name in task.lra2021]
    for name in (*scale.mechanisms, *scale.lra2021, *by_task):
        catalogue.find("mechanism", name)
    return scale


def unavailable(mechanisms: Iterable[Target], describer: Describer) -> dict[str, str]:
    """Return why mechanisms cannot be imported, by name; each is a row that says so.

    Raises `UsageError` where that would be all there is.
    """
    found = {target.name: describer.describe(target).unavailable for target in mechanisms}
    missing = {name: words for name, words in found.items() if words is not None}
    if missing and len(missing) == len(found):
        name, words = next(iter(missing.items()))
        named = words.startswith(f"mechanism '{name}'")
        raise UsageError(words if named else f"mechanism '{name}' is unavailable: {words}")
    return missing
