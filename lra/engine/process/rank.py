"""One of the processes that train a model together, started by torchrun.

`python -m lra.engine.process.rank` is its command. Its arguments are the parent's process id,
the file of the job, and the socket of the worker.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
from pathlib import Path
from typing import NoReturn

from lra.engine.process.fork_server import die_with_parent


def main(parent: int, job_file: Path, address: str) -> NoReturn:
    """Train with the others, report to the worker, and end this process."""
    # Set before torch is imported, which takes seconds.
    die_with_parent(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    from multiprocessing.connection import Connection

    import msgspec

    from lra.core.cells import QualityCell
    from lra.engine.jobs import LOST, Job, Message, Progress, Stopped

    line = socket.socket(socket.AF_UNIX)
    line.connect(address)
    connection = Connection(line.detach())
    job = msgspec.msgpack.decode(job_file.read_bytes(), type=Job)
    is_first, phase = os.environ["RANK"] == "0", "start"

    def send(message: Message) -> None:
        connection.send_bytes(msgspec.msgpack.encode(message))

    def report(progress: Progress) -> None:
        nonlocal phase
        phase = progress.phase
        if is_first:
            send(progress)

    from lra.engine.process.failures import outcome_of_exception
    from lra.engine.work.quality import as_rank
    from lra.training.outcome import Interrupted
    from lra.training.ranks import is_lost

    assert isinstance(job.cell, QualityCell), "nothing else is trained"
    try:
        outcome = as_rank(job.cell, job, report)
    except Interrupted:
        send(Stopped())
        _end(0)
    except BaseException as error:
        # The process ends inside this block, while the error keeps all its objects alive.
        if is_lost(error):
            print(f"another process of this training was lost: {error}", file=sys.stderr)
            _end(LOST)
        send(outcome_of_exception(error, phase, job))
        _end(1)
    if is_first:
        send(outcome)
    _end(0)


def _end(code: int) -> NoReturn:
    """End at once: torch's clean-up would wait for a process that hangs."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
