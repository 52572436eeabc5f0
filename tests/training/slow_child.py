"""Train the toy into the checkpoint named by the first argument, telling each step; to be killed.

The pause makes a step slow enough for the parent to choose where it kills.
"""

import sys
import time
from pathlib import Path

import torch
import toy

steps = 0


def tell() -> bool:
    global steps
    steps += 1
    print(steps, flush=True)
    time.sleep(0.01)
    return False


torch.set_num_threads(1)
toy.trained(toy.model(dropout=0.1), seed=3, checkpoint=Path(sys.argv[1]), stop=tell)
