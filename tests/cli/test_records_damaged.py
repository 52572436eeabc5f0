"""Records and packs with flipped bytes, cut ends and other values: every command that reads a store
says in lines what it leaves out, and reads the rest."""

from __future__ import annotations

import gzip
import json
import random
import shutil
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from drivers import long_seconds

import lra as package
from lra.core.errors import LONGEST, LraError
from lra.report.words import count

from .conftest import TINY, Finished, Run

KNOWN = {0, 2, 3}
READERS = (
    ("compare", "damaged", "whole"),
    ("compare", "whole", "damaged", "--fail", "--json"),
    ("compare", "sdpa", "linear", "--store", "damaged"),
    ("run", "--impl", "linear", *TINY, "--store", "damaged", "--dry-run"),
    ("run", "--impl", "linear", *TINY, "--store", "damaged", "--dry-run", "--rerun", "failed"),
    ("report", "--store", "damaged", "--out", "out"),
    ("pack", "damaged"),
)
STRANGE = (
    None, True, -1, 0, 7.5, 1e308, -1e308, 10**30, "", "ok", "x" * 999, "\u202e", [], {}, [[]],
    {"value": -1}, "\x00", 2**63, "../../x",
)  # fmt: skip
"""Values in place of others."""

Damage = Callable[[bytes, random.Random], bytes]


def flipped(data: bytes, draw: random.Random) -> bytes:
    """Some bits are others."""
    found = bytearray(data)
    for _ in range(draw.choice((1, 1, 3, 50))):
        found[draw.randrange(len(found))] ^= 1 << draw.randrange(8)
    return bytes(found)


def truncated(data: bytes, draw: random.Random) -> bytes:
    """The end is missing."""
    return data[: draw.randrange(len(data))]


def overwritten(data: bytes, draw: random.Random) -> bytes:
    """A stretch is zeros, as after a crash of the system."""
    start = draw.randrange(len(data))
    end = min(len(data), start + draw.randrange(1, 512))
    return data[:start] + bytes(end - start) + data[end:]


def doubled(data: bytes, draw: random.Random) -> bytes:
    """The file is there twice in itself."""
    return data + data[draw.randrange(len(data)) :]


def changed(data: bytes, draw: random.Random) -> bytes:
    """Some value of a line of JSON is another, or missing."""
    lines = data.splitlines() or [b""]
    place = draw.randrange(len(lines))
    try:
        record = json.loads(lines[place])
    except ValueError:
        return flipped(data, draw)
    if not isinstance(record, dict | list) or not record:  # a line of a list of numbers
        return flipped(data, draw)
    inside: Any = record
    while True:
        steps = list(inside) if isinstance(inside, dict) else range(len(inside))
        step = draw.choice(steps)
        if not (isinstance(inside[step], dict | list) and inside[step]) or draw.random() < 0.2:
            break
        inside = inside[step]
    if draw.random() < 0.2:
        del inside[step]
    else:
        inside[step] = draw.choice(STRANGE)
    lines[place] = json.dumps(record).encode()
    return b"\n".join(lines)


DAMAGES: tuple[Damage, ...] = (flipped, truncated, overwritten, doubled, changed, changed, changed)


def damage(file: Path, draw: random.Random) -> str:
    """Damage a record, or a pack with or without its compression; returns how, in a word."""
    how = draw.choice(DAMAGES)
    data = file.read_bytes()
    if file.suffix == ".gz" and draw.random() < 0.7:
        data = gzip.compress(how(gzip.decompress(data), draw), 1)
    else:
        data = how(data, draw)
    file.write_bytes(data)
    return how.__name__


def ids(store: Path) -> set[str]:
    """The records that a store has, by `lra.load`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return set(package.load(store).record)


def mutate(lra: Run, folder: Path, seconds: float, seed: int) -> Counter[str]:
    """Damage copies of a store for so many seconds; returns how often and how."""
    draw = random.Random(seed)
    whole, packed, damaged = (folder / name for name in ("whole", "packed", "damaged"))
    known = ids(whole)
    done = Counter[str]()
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        source = draw.choice((whole, packed))
        shutil.rmtree(damaged, ignore_errors=True)
        shutil.copytree(source, damaged)
        file = draw.choice(sorted(damaged.glob("[!.]*.*")))
        how = damage(file, draw)
        done[how] += 1
        said = f"seed {seed}, {how} {file.name} after {done.total()}"
        # Records beside a damaged one are unharmed, but a pack may be gone as one.
        unharmed = known - {file.stem} if source == whole else set()
        try:
            assert unharmed <= ids(damaged), said
        except LraError as error:
            assert source == packed and "\n" not in str(error), said
        command = draw.choice(READERS)
        ran = lra(*command)
        assert ran.returncode in KNOWN, (said, command, ran.stderr)
        told = [line for line in ran.stderr.splitlines() if line.startswith("lra: ")]
        assert "Traceback" not in ran.stderr, (said, command, ran.stderr)
        assert all(len(line) <= LONGEST + len("lra: ") for line in told), (said, ran.stderr)
        assert ran.returncode != 2 or told, (said, command, ran.stderr)
    return done


@pytest.fixture
def stores(lra: Run, finished: Finished, tmp_path: Path) -> Path:
    """A folder with a store as files, and the same packed."""
    for name in ("whole", "packed"):
        shutil.copytree(finished.store, tmp_path / name)
    assert lra("pack", "packed").returncode == 0
    return tmp_path


@pytest.mark.filterwarnings("always")
def test_damage_is_told_in_lines_and_the_rest_is_read(lra: Run, stores: Path) -> None:
    done = mutate(lra, stores, 12.0, seed=1)
    assert done.total() > len(DAMAGES)


@pytest.mark.slow
@pytest.mark.filterwarnings("always")
def test_much_damage_is_told_in_lines_and_the_rest_is_read(lra: Run, stores: Path) -> None:
    seed = random.randrange(1 << 32)
    done = mutate(lra, stores, long_seconds(), seed)
    print(f"damage: seed {seed}, {count(done.total(), 'store')}: {dict(sorted(done.items()))}")
