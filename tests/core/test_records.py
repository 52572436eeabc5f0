"""A record survives the round trip whole; a cell's hash moves with every field of it."""

import msgspec
import pytest

from lra.core.cells import BaselineCell, EfficiencyCell, QualityCell, ShowCell
from lra.core.protocol import DataSpec, Machine, Mechanism, ModelSpec, Rows, TrainSpec
from lra.core.records import CurvePoint, Failure, Metric, Record, decode, encode

MACHINE = Machine(processor="Fast (R) CPU @ 3 GHz", cores=2)
MECHANISM = Mechanism(name="full", config={"a": 1})
SHARED = {"machine": MACHINE, "torch": "2.13.0", "threads": 2, "versions": {"time": 1}}
CELL = EfficiencyCell(
    scale="mini", mechanism=MECHANISM, length=64, mode="forward", heads=2, head_width=8, **SHARED
)


def test_round_trip():
    losses = {"train_loss": 1.0, "validation_loss": 1.0, "validation_accuracy": 0.5}
    record = Record(
        id=CELL.id,
        cell=CELL,
        status="oom",
        started_at="2026-01-01T00:00:00Z",
        seconds=1.5,
        metrics={"latency": Metric(value=None, unit="s", why_null="out of memory")},
        curve=(CurvePoint(step=1, seconds=1.0, learning_rate=0.1, **losses),),
        failure=Failure(type="OutOfMemoryError", message="too long", phase="memory"),
    )
    again = decode(encode(record))
    assert again == record and encode(again) == encode(record)
    assert again.cell.id == CELL.id


DATA = DataSpec(task="text", hash="d", length=64, rows=Rows(train=9, validation=2, test=3))
MODEL = ModelSpec(layers=1, width=8, qkv_width=8, heads=2, mlp_width=8)
TRAINING = TrainSpec(steps=3, batch=2, learning_rate=0.1, evaluate_every=1)
BASELINE = BaselineCell(scale="mini", data=DATA, **SHARED)
CELLS = [
    CELL,
    QualityCell(
        scale="mini", mechanism=MECHANISM, data=DATA, model=MODEL, training=TRAINING, **SHARED
    ),
    BASELINE,
    ShowCell(mechanism=MECHANISM, length=8, width=4, heads=2, head_width=2, **SHARED),
]
OTHERS = {
    "machine": msgspec.structs.replace(MACHINE, cores=4),
    "versions": {"time": 2},
    "mechanism": Mechanism(name="full", config={"a": 2}),
    "data": msgspec.structs.replace(DATA, hash="e"),
    "model": msgspec.structs.replace(MODEL, pooling="cls"),
    "training": msgspec.structs.replace(TRAINING, warmup=1),
}


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: type(cell).__name__)
def test_any_field_changes_the_hash(cell):
    for field in cell.__struct_fields__:
        value = getattr(cell, field)
        other = f"{value}!" if isinstance(value, str) else OTHERS.get(field) or 1 + value * 2
        assert msgspec.structs.replace(cell, **{field: other}).id != cell.id, field
    assert msgspec.structs.replace(cell).id == cell.id


def test_a_newer_field_is_read_over_and_an_unknown_status_is_not():
    record = Record(id="x", cell=CELL, status="ok", started_at="", seconds=1.0)
    data = msgspec.json.decode(encode(record))
    assert decode(msgspec.json.encode({**data, "colour": "green"})).status == "ok"
    with pytest.raises(msgspec.ValidationError):
        decode(msgspec.json.encode({**data, "status": "fine"}))


def test_a_machine_class_is_a_folder_name():
    assert MACHINE.name == "fast-r-cpu-3-ghz-2c"
    assert Machine(processor="GPU X", cores=8, driver="580").name == "gpu-x-8c-driver580"
