"""Rendezvous of processes that train as one: a store that listens on loopback alone.

torchrun's own listens on all addresses of the machine, and accepts anyone as one of the processes.
"""

from __future__ import annotations

import socket

from torch.distributed import TCPStore  # type: ignore[attr-defined]
from torch.distributed.elastic.rendezvous import (
    RendezvousHandler,
    RendezvousInfo,
    RendezvousParameters,
    RendezvousStoreInfo,
    rendezvous_handler_registry,
)

BACKEND = "lra-loopback"
"""Name of this rendezvous in torchrun's engine, once registered."""
_HOST = "127.0.0.1"


def register_loopback() -> None:
    """Register it with torchrun's engine."""
    rendezvous_handler_registry.register(BACKEND, _LoopbackRendezvous)


class _LoopbackRendezvous(RendezvousHandler):
    """One node, whose processes find the store at an address of their environment."""

    def __init__(self, parameters: RendezvousParameters) -> None:
        self._run = parameters.run_id
        self._closed = False
        with socket.create_server((_HOST, 0)) as listener:
            port = listener.getsockname()[1]
            self._store = TCPStore(
                _HOST,
                port,
                is_master=True,
                wait_for_workers=False,
                master_listen_fd=listener.detach(),
            )
        self._place = RendezvousStoreInfo(master_addr=_HOST, master_port=port)

    @property
    def use_agent_store(self) -> bool:
        return True

    def get_backend(self) -> str:
        return BACKEND

    def next_rendezvous(self) -> RendezvousInfo:
        return RendezvousInfo(self._store, 0, 1, self._place)

    def is_closed(self) -> bool:
        return self._closed

    def set_closed(self) -> None:
        self._closed = True

    def num_nodes_waiting(self) -> int:
        return 0

    def get_run_id(self) -> str:
        return self._run

    def shutdown(self) -> bool:
        self._closed = True
        return True
