"""One warm fork server for all tests of this room, whose largest cost is its import of torch; and a
cluster without workers."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from engine_jobs import MakePool, Run

from lra.engine.process.launch import ForkServer
from lra.engine.process.pool import Pool
from lra.store import Store

if TYPE_CHECKING:  # These need the extra cluster.
    from idle_cluster import Client

    from lra.engine.cluster.cluster import Cluster


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


@pytest.fixture
def client() -> Client:
    from idle_cluster import Client

    return Client()


@pytest.fixture
def cluster(client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """A cluster whose workers are the client's handshakes; none yet."""
    from idle_cluster import OURS

    from lra.engine.cluster import cluster as module
    from lra.engine.cluster.shared_folder import SharedFolder

    monkeypatch.setattr(module, "_BETWEEN", 0.0)
    monkeypatch.setattr(module, "software", lambda: OURS)
    folder = SharedFolder(str(tmp_path), "token")
    return module.Cluster("toy", client, folder, pins=True, patience=60.0)  # type: ignore[arg-type]
