"""Two stores: a run and its reference."""

from __future__ import annotations

from lra.core.records import Record, Status

from .accuracies import baseline, quality
from .pictures import shown
from .settings import LENGTHS, THERE
from .timings import efficiency


def store() -> tuple[list[Record], list[Record]]:
    """A run and its reference, with every kind of row and ending that a report must show."""
    shares = {"listops": 0.44, "text": 0.783, "retrieval": 0.93, "image": 0.86}
    run = [quality("performer", task, share) for task, share in shares.items()]
    run.append(quality("performer", "pathfinder", status="timeout"))
    run += [quality("identity", task, 0.2) for task in LENGTHS]
    seconds = {"performer": 3e-3, "sdpa": 2e-3, "identity": 4e-4}
    growths = {"performer": ("O((n + m) r d)", "O(n + m + r d)"), "sdpa": ("O(n m d)", "O(n)")}
    for length in (512, 1024, 2048):
        for name, second in seconds.items():
            power = 2 if name == "sdpa" else 1
            time, room = second * (length / 512) ** power, 14e6 * length / 512
            said = growths.get(name)
            run.append(efficiency(name, length, "forward", time, room, declared=said))
            gone = name == "sdpa" and length == 2048
            status: Status = "oom" if gone else "ok"
            run.append(
                efficiency(name, length, "train", 3 * time, 3 * room, status=status, declared=said)
            )
    run.append(shown("performer"))
    reference = [baseline(t, machine=THERE) for t in LENGTHS if t != "pathfinder"]
    reference.append(baseline("pathfinder", machine=THERE, marker_distance=0.685))
    for name, gain in (("sdpa", 0.05), ("linear", -0.1)):
        whole = {**shares, "pathfinder": 0.8}
        reference += [quality(name, t, s + gain, machine=THERE) for t, s in whole.items()]
    for name, second in {**seconds, "linear": 1e-3}.items():
        reference += [
            efficiency(name, length, "train", second, 1e7, machine=THERE) for length in (512, 1024)
        ]
    return run, reference
