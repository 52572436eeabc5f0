"""Connection to the cluster that `--cluster` names."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from ipaddress import ip_address
from pathlib import Path

import dask
from distributed import Client, SpecCluster
from distributed.comm import get_address_host, get_address_host_port, resolve_address

from lra.core.cells import Device
from lra.core.errors import LraError, UsageError
from lra.engine.cluster.batch import WORKER_CONFIG, Batch, batch_cluster, read_batch
from lra.engine.cluster.cluster import Cluster
from lra.engine.cluster.local import PREFIX, local_cluster, number_of_workers
from lra.engine.cluster.shared_folder import log_to, share
from lra.engine.machine import host
from lra.engine.process.error_text import one_line

_PATIENCE = 60.0
"""Seconds without any worker before a run gives up, unless a queue may be the reason; also the
seconds that further workers have to join after the first."""
_PORTS = 65535
_CONFIG = {
    **WORKER_CONFIG,
    # The run itself counts a death and runs the job again.
    "distributed.scheduler.allowed-failures": 0,
    "distributed.scheduler.work-stealing": False,
    "distributed.scheduler.worker-ttl": "60s",
    # Seconds for a scheduler to answer.
    "distributed.comm.timeouts.connect": "10s",
}


def workers_asked(value: str, device: Device | None) -> int | None:
    """Return how many workers `--cluster` asks for, without connecting; None for the address of a
    scheduler.

    Raises `UsageError` for a value that names no cluster.
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
    echo: Callable[[str], None] = lambda line: None,
    left: Callable[[], float] = lambda: math.inf,
) -> Iterator[Cluster]:
    """Connect to `local:N`, the address of a scheduler, or the jobs of a TOML file.

    `device` is that of the cells, None for a GPU where workers have one; `echo` gets warnings, and
    `left` returns the seconds that the run still has. Raises `LraError` where a cluster does not
    answer, no worker comes, or one may not run cells of this run.
    """
    target = _target(value, device)
    if dask.config.get("distributed.comm.require-encryption") and not _has_tls(target):
        # Raised here: a Dask cluster that fails to start is never closed.
        raise UsageError(
            f"--cluster '{value}' has no TLS, which Dask's configuration asks for; see "
            "docs/cluster.md, section Security, or unset distributed.comm.require-encryption"
        )
    number, patience = workers_asked(value, device), _PATIENCE
    with ExitStack() as stack:
        stack.enter_context(dask.config.set(_CONFIG))
        folder = stack.enter_context(share(store))
        stack.enter_context(log_to(folder.log("scheduler")))
        cluster: SpecCluster | None = None
        try:
            if isinstance(target, int):
                cluster = stack.enter_context(local_cluster(target, folder))
            elif isinstance(target, Batch):
                cluster = stack.enter_context(batch_cluster(target, folder, value))
                patience = math.inf
            # By its address: a client that is interrupted would end the start of a cluster's
            # workers, whose close then fails.
            address = cluster.scheduler_address if cluster else value
            security = cluster.security if cluster else None
            with warnings.catch_warnings():
                # Our own handshake compares versions when workers join.
                warnings.simplefilter("ignore")
                client = stack.enter_context(
                    Client(address, security=security, set_as_default=False)
                )
        except (OSError, ValueError, RuntimeError) as error:
            raise LraError(
                f"--cluster '{value}' does not answer: {one_line(error)}; see that its scheduler "
                f"runs and that this machine reaches it, and {folder.log('').parent}"
            ) from error
        found = Cluster(value, client, folder, pins=device != "cpu", patience=patience)
        if cluster is None:
            stack.callback(found.release)
        if is_open(address):
            echo(
                f"--cluster {value}: whoever reaches {address} can run code as you; use TLS, by "
                "docs/cluster.md, section Security"
            )
        wait_for_workers(found, number or 1, echo, left)
        yield found


def wait_for_workers(
    cluster: Cluster, number: int, echo: Callable[[str], None], left: Callable[[], float]
) -> None:
    """Wait for the first workers: for as many as `number`, or as many as come in time.

    Raises `LraError` where one may not run cells, or none comes.
    """
    began, first_came, is_told = time.monotonic(), math.inf, False
    while True:
        cluster.update()
        if cluster.refusals:
            raise LraError(f"--cluster {cluster.name}: {cluster.refusals[0]}")
        now = time.monotonic()
        if cluster.workers:
            first_came = min(first_came, now)
            if (
                cluster.size >= number
                or now - first_came > min(cluster.patience, _PATIENCE)
                or not left()
            ):
                return
        elif now - began > cluster.patience or not left():
            raise LraError(
                f"--cluster {cluster.name}: no worker has come in {now - began:.0f} s; "
                f"{'' if left() else 'give --budget more, '}start some, or see "
                f"{cluster.folder.log('').parent}"
            )
        if now - began > 10 and not is_told:
            is_told = True
            echo(f"waiting for workers: {cluster.size} of {number}")
        time.sleep(0.05)


def is_open(address: str) -> bool:
    """Return whether other machines can reach an address without TLS."""
    if _has_tls(address):
        return False
    return not ip_address(get_address_host(resolve_address(address))).is_loopback


def _has_tls(target: int | Batch | str) -> bool:
    if isinstance(target, Batch):
        return "security" in target.job or _has_tls(str(target.job.get("protocol")))
    return str(target).startswith(("tls:", "wss:"))


def _target(value: str, device: Device | None) -> int | Batch | str:
    """Return what `--cluster` names, without connecting: a number of workers of this machine, a
    file, or the address of a scheduler.

    Raises `UsageError` for any other value.
    """
    if value.startswith(PREFIX):
        return number_of_workers(value, device or host.default_device())
    if Path(value).suffix == ".toml":
        return read_batch(Path(value))
    try:
        # A client that is given any other address prints a traceback of its own when it is dropped.
        name, port = get_address_host_port(value)
        if not name:
            raise ValueError("no host")
        if port > _PORTS:
            raise ValueError(f"no port has the number {port}")
        # As the system's own look-up encodes it: its error would come from a task that nobody
        # awaits.
        name.encode("idna")
    except UnicodeError as error:
        raise UsageError(
            f"--cluster '{value}': a part of the host's name is empty, too long or of signs that "
            "no name has; write e.g. tcp://host:8786"
        ) from error
    except ValueError as error:
        raise UsageError(
            f"--cluster '{value}' ({one_line(error)}) is neither {PREFIX}N, nor an address such as "
            "tcp://host:8786, nor a TOML file"
        ) from error
    return value
