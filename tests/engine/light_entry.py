"""Worker of the process tests: no torch, and an act named by the first message."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from multiprocessing.connection import Connection


def main(connection: Connection) -> None:
    """Do what the first message says."""
    match connection.recv_bytes().decode().split(maxsplit=1):
        case ["echo", text]:
            connection.send_bytes(text.encode())
        case ["facts"]:
            signal_of_interrupt = signal.getsignal(signal.SIGTERM)
            facts = [os.getpgid(0), os.getppid(), signal_of_interrupt == signal.SIG_DFL]
            connection.send_bytes(" ".join(map(str, facts)).encode())
        case ["print", text]:
            print(text)
            print(text.upper(), file=sys.stderr)
        case ["exit", code]:
            os._exit(int(code))
        case ["raise", text]:
            raise ValueError(text)
        case ["kill", number]:
            os.kill(os.getpid(), int(number))
        case ["temporary"]:
            connection.send_bytes(tempfile.mkdtemp().encode())
            time.sleep(600)
        case ["sleep"]:
            connection.send_bytes(b"asleep")
            time.sleep(600)
        case ["child"]:
            child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
            connection.send_bytes(str(child.pid).encode())
            time.sleep(600)
        case ["orphan"]:
            child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
            connection.send_bytes(str(child.pid).encode())
        case unknown:
            raise AssertionError(unknown)
