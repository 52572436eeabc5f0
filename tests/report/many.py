"""Five thousand records and more: sixty mechanisms, trained and timed as a large sweep does it.

`python -m report.many STORE` in the folder tests writes them, for `lra report --store STORE`.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

from lra.core.records import Record
from lra.store import Store

from .sample import LENGTHS, baseline, ceiling, efficiency, error, quality, shown

NAMES = ("sdpa", "identity", *(f"mechanism_{n}" for n in range(58)))
STEPS = (256, 512, 1024, 2048, 4096, 8192, 16384, 32768)
MODES = ("forward", "train", "decode")


def records() -> list[Record]:
    """900 trainings, 4,320 timings of which the slow run out of memory, 360 errors, 60 pictures."""
    draw = random.Random(0)
    made: list[Record] = [ceiling(), *(baseline(task) for task in LENGTHS)]
    for name in NAMES:
        skill, speed, power = draw.random(), draw.uniform(0.3, 3.0), draw.choice((1.0, 1.5, 2.0))
        for task in LENGTHS:
            made += [
                quality(name, task, 0.3 + 0.5 * skill + draw.gauss(0, 0.02), seed=seed)
                for seed in range(3)
            ]
        for length in STEPS:
            for mode in MODES:
                growth = speed * (length / 256) ** (1.0 if mode == "decode" else power)
                for replicate in range(3):
                    if growth > 8000 and mode != "decode":
                        made.append(
                            efficiency(name, length, mode, status="oom", replicate=replicate)
                        )
                        continue
                    seconds = 1e-3 * growth * draw.uniform(0.97, 1.03)
                    made.append(
                        efficiency(
                            name,
                            length,
                            mode,
                            seconds,
                            1e6 * growth,
                            replicate=replicate,
                            declared=("O(n d^2)", "O(n d)"),
                            direction="causal" if mode == "decode" else "bidirectional",
                        )
                    )
        made.append(shown(name, 64, heads=4, alike=False))
        made += [
            error(name, length, draw.uniform(0.01, 1.0), seed=seed)
            for length in (256, 1024)
            for seed in range(3)
        ]
    return made


if __name__ == "__main__":
    with (store := Store(Path(sys.argv[1]))).locked():
        for record in records():
            store.save(record)
