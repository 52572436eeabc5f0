"""Looking at processes by their ids, and git."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path


def git(folder: Path, *words: str) -> str:
    """Run it in a folder, as somebody; returns its output."""
    somebody = ("-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false")
    command = ["git", "-C", str(folder), *somebody, *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def alive(pid: int) -> bool:
    """Whether a process exists and is no zombie."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until(true: Callable[[], bool], seconds: float = 20.0) -> bool:
    """Wait for something to become true."""
    deadline = time.monotonic() + seconds
    while not true():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def gone(pids: Iterable[int]) -> bool:
    """Wait for processes to end."""
    return all(wait_until(lambda pid=pid: not alive(pid)) for pid in pids)


def descendants(pid: int) -> set[int]:
    """A process, and all that it or one of these has started."""
    parents = {}
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            told = (place / "stat").read_text().rpartition(")")[2].split()
            parents[int(place.name)] = int(told[1])
    found, more = set(), {pid}
    while more:
        found |= more
        more = {child for child, parent in parents.items() if parent in more}
    return found


def listening(pids: Iterable[int]) -> set[tuple[IPv4Address | IPv6Address, int]]:
    """Addresses and ports on which any of these processes takes connections by TCP."""
    theirs = set()
    for pid in pids:
        with suppress(OSError):
            for descriptor in Path(f"/proc/{pid}/fd").iterdir():
                with suppress(OSError):
                    theirs.add(str(descriptor.readlink()))
    found = set()
    for table in ("tcp", "tcp6"):
        with suppress(OSError):
            for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
                _, local, _, state, *_, inode = line.split()[:10]
                if state == "0A" and f"socket:[{inode}]" in theirs:
                    host, port = local.split(":")
                    found.add((_address(bytes.fromhex(host)), int(port, 16)))
    return found


def _address(words: bytes) -> IPv4Address | IPv6Address:
    """An address as the kernel shows it: its words of 32 bits as this machine has them."""
    turned = b"".join(words[at : at + 4][::-1] for at in range(0, len(words), 4))
    return ip_address(turned)
