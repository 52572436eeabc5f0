"""One warm fork server for all tests of this room: its import of torch is their largest cost."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from engine_jobs import MakePool, Run

from lra.engine.process.launch import ForkServer
from lra.engine.process.pool import Pool
from lra.store import Store


@pytest.fixture(scope="session")
def server() -> Iterator[ForkServer]:
    with ForkServer() as server:
        yield server


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A store held open for writing."""
    with Store(tmp_path / "store").locked() as store:
        yield store


@pytest.fixture
def pool(server: ForkServer, store: Store) -> MakePool:
    def make(**terms: object) -> Pool:
        return Pool(**{"store": store, "server": server, "slots": 1, **terms})  # type: ignore[arg-type]

    return make


@pytest.fixture
def run(pool: MakePool) -> Run:
    return lambda *jobs, **terms: list(pool(**terms).run(list(jobs)))


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Prepared data, made once."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def no_nohup() -> Iterator[None]:
    """SIGHUP as it is without nohup, whatever the tests run under."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)
