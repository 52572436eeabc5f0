"""Train the toy into the checkpoint named by the first argument, telling each step; to be killed.

The pause makes a step slow enough for the parent to choose where it kills.
"""

import sys
import time
from pathlib import Path

import torch
import toy

from lra.training.loop import Run, train
from lra.training.setup import Training

steps = 0


def tell() -> bool:
    global steps
    steps += 1
    print(steps, flush=True)
    time.sleep(0.01)
    return False


torch.set_num_threads(1)
train(
    Run(
        toy.model(dropout=0.1),
        Training(toy.dataset(), toy.SPEC, seed=3),
        device=toy.CPU,
        checkpoint=Path(sys.argv[1]),
        stop=tell,
    )
)
