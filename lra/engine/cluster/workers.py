"""The workers of a cluster that may run cells: who is there, who is free, who shares a machine."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass
from typing import Any

import msgspec
from distributed import Client, Future, fire_and_forget

from lra.core.protocol import Machine
from lra.engine.cluster.handshake import Greeting, build, greet, unfit
from lra.engine.cluster.messages import pack
from lra.engine.cluster.shared_folder import Shared
from lra.engine.cluster.worker import prepare
from lra.engine.jobs import Job
from lra.engine.machine import offline
from lra.engine.process.error_text import named_line
from lra.engine.process.signals import Terminated

_BETWEEN = 0.5
"""Seconds between two looks at who is there."""


@dataclass(eq=False)
class Member:
    """A worker that may run cells."""

    address: str
    name: str
    greeting: Greeting
    gpu: str
    """The one that is its own, as CUDA_VISIBLE_DEVICES has it; empty where it has none."""
    job: Job | None = None
    """What it runs."""

    @property
    def variables(self) -> dict[str, str]:
        """Of the environment of its cells, beside what the worker has itself."""
        told = {name: os.environ[name] for name in offline.VARIABLES if name in os.environ}
        return told | ({"CUDA_VISIBLE_DEVICES": self.gpu} if self.gpu else {})

    @property
    def _seat(self) -> tuple[str, tuple[int, ...]]:
        """The processors that it computes on, wherever they are."""
        return self.greeting.host, self.greeting.cpus

    def shares_machine(self, other: Member) -> bool:
        """Return whether two workers are on one machine."""
        return self.greeting.host == other.greeting.host

    def shares_cores(self, other: Member) -> bool:
        """Return whether two workers compute on the same processors of one machine."""
        return self._seat == other._seat


class Roster:
    """Knows the workers; `look` sees who has come and gone.

    With `pins` each worker gets a GPU of its own, where machines have any.
    """

    def __init__(self, client: Client, shared: Shared, run: str, *, pins: bool) -> None:
        self.client, self.shared, self.run, self.pins = client, shared, run, pins
        self.members: dict[str, Member] = {}
        """By address."""
        self.machines: dict[str, Machine] = {}
        """Their class, by device; {} before the first has joined."""
        self._ours = build()
        self._greeted: dict[str, tuple[str, Future]] = {}
        self._refused: set[str] = set()
        self._news: list[str] = []
        self._looked = 0.0
        self._reserved: set[str] = set()

    @property
    def names(self) -> set[str]:
        """Of the workers that may run cells."""
        return {member.name for member in self.members.values()}

    @property
    def is_waiting(self) -> bool:
        """Whether a worker is there that has not yet said what it is."""
        return bool(self._greeted)

    def look(self, *, now: bool = False) -> list[Member]:
        """See who has come, and return the members that are gone; not more often than it is worth.

        Raises `OSError` where the scheduler does not answer.
        """
        self._hear_greetings()
        if not now and time.monotonic() - self._looked < _BETWEEN:
            return []
        self._looked = time.monotonic()
        there = self._there()
        for address, told in there.items():
            if address not in {*self.members, *self._greeted, *self._refused}:
                future = self.ask(address, greet, pack(self.shared))
                self._greeted[address] = (str(told["name"]), future)
        self._refused &= there.keys()
        for address in self._greeted.keys() - there.keys():
            del self._greeted[address]
        return [self.members.pop(address) for address in self.members.keys() - there.keys()]

    def refuse(self, member: Member, why: str) -> None:
        """Let a member run no more cells, for a reason in words that follow its name."""
        if self.members.pop(member.address, None) is not None:
            self._turn_away(member.address, member.name, why)

    def news(self) -> list[str]:
        """Return, once, why workers may not run cells, a line each."""
        told, self._news = self._news, []
        return told

    def ask(self, address: str, what: Callable[..., Any], *arguments: Any, key: str = "") -> Future:
        """Have a worker, and no other, call a function."""
        return self.client.submit(
            what,
            *arguments,
            key=key or f"lra-{what.__name__}-{uuid.uuid4().hex}",
            workers=[address],
            allow_other_workers=False,
            pure=False,
        )

    def new_round(self) -> None:
        """Begin to place the waiting jobs anew."""
        self._reserved.clear()

    @property
    def has_room(self) -> bool:
        """Whether any member could take a job in this round."""
        return any(True for _ in self._free())

    def place_for(self, job: Job) -> Member | None:
        """Return a free member that may run a job now; None where there is none.

        A timing has a machine for itself: where none is free of our cells, one takes no more of
        them in this round. Cells on the CPU, of workers on the same processors,
        compute with no more threads than there are processors.
        """
        for member in self._free():
            if self._fits(member, job):
                return member
        if job.alone:
            self._reserve()
        return None

    def _free(self) -> Iterator[Member]:
        for member in self.members.values():
            if member.job is None and member.greeting.host not in self._reserved:
                yield member

    def _fits(self, member: Member, job: Job) -> bool:
        beside = [
            (other, other.job)
            for other in self.members.values()
            if other.job is not None and other.shares_machine(member)
        ]
        if job.alone or any(running.alone for _, running in beside):
            return not beside
        if getattr(job.cell, "device", "cpu") == "cuda":
            return True
        taken = sum(running.cell.threads for other, running in beside if other.shares_cores(member))
        return not taken or taken + job.cell.threads <= member.greeting.machines["cpu"].cores

    def _reserve(self) -> None:
        """Let the machine with the fewest cells of ours run out of them."""
        busy: dict[str, int] = {}
        for member in self.members.values():
            machine = member.greeting.host
            if machine not in self._reserved:
                busy[machine] = busy.get(machine, 0) + (member.job is not None)
        if busy:
            self._reserved.add(min(busy, key=lambda machine: busy[machine]))

    def _there(self) -> dict[str, Any]:
        """Ask the scheduler which workers it has."""
        scheduler = self.client.scheduler
        if scheduler is None:
            raise OSError("the connection is closed")
        # Not `scheduler_info`: it is silent on a scheduler that does not answer, and the client
        # overwrites what it returns, without any worker, every two seconds.
        found: dict[str, Any] = self.client.sync(scheduler.identity, n_workers=-1)["workers"]
        return found

    def _hear_greetings(self) -> None:
        for address, (name, future) in list(self._greeted.items()):
            if not future.done():
                continue
            del self._greeted[address]
            try:
                greeting = msgspec.msgpack.decode(future.result(), type=Greeting)
            except Terminated:
                raise
            except Exception as error:
                # Whatever it is, it is over there, and this run has to go on without.
                words = (
                    f"cannot say what it is ({named_line(error)}); start it from the environment "
                )
                self._turn_away(address, name, f"{words}of the run")
                continue
            self._admit(address, name, greeting)

    def _admit(self, address: str, name: str, greeting: Greeting) -> None:
        why = unfit(greeting, self._ours, self.machines)
        gpu = ""
        if not why and self.pins and greeting.gpus:
            gpu = self._own_gpu(greeting)
            if not gpu:
                why = (
                    f"has no GPU of its own: all {len(greeting.gpus)} that it sees have workers; "
                    "start one for each GPU"
                )
        if why:
            self._turn_away(address, name, why)
            return
        self.machines = self.machines or greeting.machines
        member = self.members[address] = Member(address, name, greeting, gpu)
        fire_and_forget(self.ask(address, prepare, self.run, member.variables))

    def _own_gpu(self, greeting: Greeting) -> str:
        taken: Set[str] = {
            one.gpu for one in self.members.values() if one.greeting.host == greeting.host
        }
        return next((gpu for gpu in greeting.gpus if gpu not in taken), "")

    def _turn_away(self, address: str, name: str, why: str) -> None:
        self._refused.add(address)
        self._news.append(f"worker {name} {why}")
