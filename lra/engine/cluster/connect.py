"""Opening a cluster from what a person wrote after `--cluster`."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import dask
from distributed import Client
from distributed.comm import get_address_host, get_address_host_port, resolve_address

from lra.core.cells import Device
from lra.core.errors import LraError, UsageError
from lra.engine.cluster.batch import Batch, batch_jobs, read_batch
from lra.engine.cluster.cluster import Cluster
from lra.engine.cluster.local import PREFIX, local, quiet, size
from lra.engine.cluster.shared_folder import shared
from lra.engine.machine import host
from lra.engine.process.error_text import one_line

_ANSWERS = 10.0
"""Seconds that a scheduler has to answer."""
_PATIENCE = 60.0
"""Seconds without any worker before a run gives up, where no queue may be the reason."""
_PORTS = 65535
_CONFIG = {
    # A death is counted, and the job run again, by us.
    "distributed.scheduler.allowed-failures": 0,
    "distributed.scheduler.work-stealing": False,
    "distributed.scheduler.worker-ttl": "60s",
    "distributed.comm.timeouts.connect": f"{_ANSWERS:g}s",
}


def workers_asked(value: str, device: Device | None) -> int | None:
    """Return how many workers `--cluster` asks for, without connecting; None where it is the
    address of a scheduler, which knows.

    Raises `UsageError` for what names no cluster.
    """
    target = _target(value, device)
    if isinstance(target, Batch):
        return target.workers
    return target if isinstance(target, int) else None


@contextmanager
def open_cluster(
    value: str,
    store: Path,
    *,
    device: Device | None,
    told: Callable[[str], None] = lambda line: None,
    left: Callable[[], float] = lambda: math.inf,
) -> Iterator[Cluster]:
    """Connect to `local:N`, the address of a scheduler, or what a TOML file describes.

    `device` is what cells compute on, None for a GPU where workers have one; `told` hears what is
    waited for, and `left` says how many seconds the run still has. Raises `LraError` where a
    cluster does not answer, no worker comes, or one may not run cells of this run.
    """
    target = _target(value, device)
    if dask.config.get("distributed.comm.require-encryption") and not _has_tls(target):
        raise UsageError(
            f"--cluster '{value}' has no TLS, which Dask's configuration asks for; name what has, "
            "by docs/cluster.md, section Security, or unset distributed.comm.require-encryption"
        )
    pins = device != "cpu"
    with ExitStack() as stack:
        stack.enter_context(dask.config.set(_CONFIG))
        folder = stack.enter_context(shared(store))
        if isinstance(target, int):
            number = target
            scheduler, workers = stack.enter_context(local(number, folder))
            client = stack.enter_context(_client(value, scheduler))
            cluster = Cluster(
                value, client, folder, pins=pins, patience=_PATIENCE, tend=workers.tend
            )
        elif isinstance(target, Batch):
            number = target.workers
            jobs = stack.enter_context(batch_jobs(target, folder, value))
            client = stack.enter_context(_client(value, jobs))
            cluster = Cluster(value, client, folder, pins=pins, patience=math.inf)
        else:
            number = 1
            stack.enter_context(quiet(folder))
            client = stack.enter_context(_client(value, target))
            cluster = Cluster(value, client, folder, pins=pins, patience=_PATIENCE)
            stack.callback(cluster.part)
        assert client.scheduler is not None
        if is_open(client.scheduler.address):
            told(
                f"--cluster {value}: whoever reaches {client.scheduler.address} can run code as "
                "you; use TLS, by docs/cluster.md, section Security"
            )
        cluster.gather(number, told, left)
        yield cluster


def is_open(address: str) -> bool:
    """Return whether others than this machine may reach an address, and no TLS keeps them out."""
    if _has_tls(address):
        return False
    return not ip_address(get_address_host(resolve_address(address))).is_loopback


def _has_tls(target: int | Batch | str) -> bool:
    if isinstance(target, Batch):
        return "security" in target.job or _has_tls(str(target.job.get("protocol")))
    return str(target).startswith(("tls:", "wss:"))


def _target(value: str, device: Device | None) -> int | Batch | str:
    """Return what `--cluster` names, without connecting: so many workers of this machine, what a
    file says, or the address of a scheduler.

    Raises `UsageError` for what is none of them.
    """
    if value.startswith(PREFIX):
        return size(value, device or host.default_device())
    if Path(value).suffix == ".toml":
        return read_batch(Path(value))
    if ":" not in value:
        raise UsageError(
            f"--cluster '{value}' is neither local:N, nor an address such as tcp://host:8786, nor "
            "a TOML file"
        )
    if value.endswith("://"):
        raise UsageError(f"--cluster '{value}' names no host; write e.g. tcp://host:8786")
    try:
        # A client that is given such an address prints a traceback of its own when it is dropped.
        host_named, port = get_address_host_port(value)
        if port > _PORTS:
            raise ValueError(f"no port has the number {port}")
        # As the system's own look-up does, whose error comes from a task that nobody waits for.
        host_named.encode("idna")
    except UnicodeError as error:
        raise UsageError(
            f"--cluster '{value}': a part of the host's name is empty, too long or of signs that "
            "no name has; write e.g. tcp://host:8786"
        ) from error
    except ValueError as error:
        raise UsageError(
            f"--cluster '{value}': {one_line(error)}; write e.g. tcp://host:8786"
        ) from error
    if not host_named:
        raise UsageError(f"--cluster '{value}' names no host; write e.g. tcp://host:8786")
    return value


@contextmanager
def _client(name: str, target: Any) -> Iterator[Client]:
    """A connection to a scheduler; raises `LraError` where none answers."""
    with warnings.catch_warnings():
        # Versions are compared when workers join, in our words.
        warnings.simplefilter("ignore")
        try:
            client = Client(target, timeout=_ANSWERS, set_as_default=False)
        except (OSError, ValueError, TimeoutError) as error:
            raise LraError(
                f"--cluster '{name}' does not answer: {one_line(error)}; see that its scheduler "
                "runs and that this machine reaches it"
            ) from error
    try:
        yield client
    finally:
        client.close(timeout=_ANSWERS)
