"""Shipped scales and suites of which keys were dropped, moved or given other values: they are read,
or refused in one line."""

import copy
import datetime
import random
import time
import tomllib
from itertools import islice

import pytest
from drivers import long_seconds

from lra.core import scales
from lra.core.errors import UsageError

VALUES = (
    0, -1, 10**29, 2**63, -(2**64), 1.5, float("inf"), "", "text", "a\0b", "x" * 500, True,
    [], {}, [1], ["x"], [[]], [{}], [{"a": 1}], {"a": 1}, {"a": {"b": {"c": 1}}}, {"": 1},
    {"a.b": 1, "...": 2}, {"[x]": {"`": 10**29}}, {"a": 0xF << 20_000},
    datetime.date(2020, 1, 1), datetime.time(1), datetime.datetime(2020, 1, 1),
)  # fmt: skip
KINDS = {"scales": scales.Scale, "suites": scales.Suite}
TRIED = 4000


def shipped(folder, name):
    return tomllib.loads((scales._FOLDER / folder / f"{name}.toml").read_text())


def place(data, draws):
    """A part and a key or index of it: tables as likely as the values deep inside of them."""
    part = data
    while True:
        step = draws.choice([*part] if isinstance(part, dict) else range(len(part)))
        inside = part[step]
        if not (isinstance(inside, dict | list) and inside) or draws.random() < 0.4:
            return part, step
        part = inside


def mutate(data, draws):
    if not data:
        return
    part, last = place(data, draws)
    match draws.randrange(4):
        case 0:
            del part[last]
        case 1 if isinstance(part, dict):
            part["new"] = part.pop(last)
        case _:
            part[last] = copy.deepcopy(draws.choice(VALUES))


def read(data, folder, name):
    """Read as a run does; nothing but one line may come of it."""
    try:
        found = scales.convert({"name": name, **data}, KINDS[folder], f"'{name}'")
        if isinstance(found, scales.Scale):
            for task in found.tasks:
                found.model_spec(task)
                found.train_spec(task)
    except UsageError as error:
        assert "\n" not in str(error)


def mutated(draws):
    """Shipped files with some mutations, without end, each with its folder and its name."""
    plain = {(kind, name): shipped(kind, name) for kind in KINDS for name in scales.names(kind)}
    while True:
        chosen = draws.choice(list(plain))
        data = copy.deepcopy(plain[chosen])
        for _ in range(draws.choice((1, 2, 2, 3, 4))):
            mutate(data, draws)
        yield data, *chosen


def test_mutated_files_are_read_or_refused():
    for file in islice(mutated(random.Random(0)), TRIED):
        read(*file)


@pytest.mark.slow
def test_many_mutated_files_are_read_or_refused():
    seed, tried, until = random.randrange(1 << 32), 0, time.monotonic() + long_seconds()
    print(f"\nfiles: seed {seed}")
    for file in mutated(random.Random(seed)):
        read(*file)
        tried += 1
        if time.monotonic() > until:
            break
    print(f"files: {tried:,} scales and suites")


@pytest.mark.parametrize("value", [10**9, 1.5, True, "text", []])
def test_a_missing_key_beside_a_value_that_is_no_table(value):
    data = shipped("scales", "compact")
    del data["tasks"]["listops"]["rows"]["train"]
    data["tasks"]["recall"] = value
    with pytest.raises(UsageError, match=r"^here: "):
        scales.convert({"name": "compact", **data}, scales.Scale, "here")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("x = " + "[" * 5000 + "]" * 5000, "is not valid TOML"),
        ("x = " + "9" * 5000, "is not valid TOML"),
        ("tasks.x = 0x" + "f" * 5000, "tasks.x has over 100 digits"),
        ("tasks.recall = 1" + "0" * 29, "must be a table"),
        (".".join("a" * 3000) + " = 1", "a.a.a... is nested too deep"),
        ("x = 2020-13-45", "is not valid TOML"),
    ],
)
def test_texts_that_no_record_could_hold_are_refused(text, says):
    with pytest.raises(UsageError) as caught:
        content = scales.read_toml(text.encode(), "file 'x.toml'")
        scales.convert({"name": "x", "title": "x", **content}, scales.Scale, "file 'x.toml'")
    told = str(caught.value)
    assert told.startswith("file 'x.toml'") and says in told and "\n" not in told
