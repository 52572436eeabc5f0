"""One of several processes that train the toy together: `rank_child.py INDEX COUNT FOLDER`.

Each writes to a file what every scenario ended in, to be compared with one process alone.
"""

import os
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path

import msgspec
import torch
import torch.distributed as dist
import toy
from torch import Tensor, nn

from lra.training.outcome import Interrupted, Trained
from lra.training.ranks import ALONE, Joined, Ranks

ROWS = 391
"""Cut into 13 batches, of 30 and 31 rows."""
SCENARIOS: dict[str, dict[str, object]] = {
    "plain": {},
    "micro_batches": {"micro_batches": 4},
    "more_micro_batches_than_rows": {"micro_batches": 20},
    "batches_of_three": {"batch": 3},
    "clipped": {"clip": 0.1},
    "pairs": {},
    "unread_weight": {},
    "dropping": {},
    "stopped": {},
    "stopped_dropping": {},
    "handed_over": {},
}
"""Changes of the protocol; see `ends` for the rest."""
STOPS = {
    "stopped": (4, 9, 6, 4, 7, 5, 8),
    "stopped_dropping": (4, 9, 6, 4, 7, 5, 8),
    "handed_over": (13,),
}
"""How often several processes are asked before they stop: a step each, 9 times in a validation and
10 in the test."""


def ends(name: str, ranks: Ranks, folder: Path) -> dict[str, object]:
    """Train by a scenario and return all that is to be the same."""
    spec = msgspec.structs.replace(
        toy.SPEC, steps=20, evaluate_every=10, evaluation_batch=7, **SCENARIOS[name]
    )
    inputs = 2 if name == "pairs" else 1
    drawn: list[Tensor] = []

    def once(path: Path | None, stop: Callable[[], bool] | None) -> tuple[nn.Module, Trained]:
        model = toy.model(inputs=inputs, dropout=0.3 if name.endswith("dropping") else 0.0)
        drawn.clear()
        model.embedding.dropout.register_forward_hook(
            lambda module, given, out: drawn.append(out.detach() == 0)
        )
        # Sums in another order then differ less than the loss, which is float32.
        model = model.double()
        if name == "unread_weight":
            model.register_parameter("unread", nn.Parameter(torch.ones(3, dtype=torch.float64)))
        data = toy.dataset(inputs=inputs, rows=ROWS)
        trained = toy.trained(
            model, spec, data=data, seed=3, checkpoint=path, stop=stop, ranks=ranks
        )
        return model, trained

    path = folder / (f"{name}.pt" if name == "handed_over" else f"{name}-{ranks.count}.pt")
    stopped_at = []
    # It alone asks to stop.
    is_last = ranks.index == ranks.count - 1
    for allowed in STOPS.get(name, ()) if ranks.count > 1 else ():
        polls = count()
        try:
            once(path, lambda polls=polls, allowed=allowed: is_last and next(polls) >= allowed)
        except Interrupted as ending:
            stopped_at.append(ending.step)
            # The first one is still writing what the others are about to read.
            dist.barrier()
    if name == "handed_over" and ranks.count > 1:
        return {"stopped_at": stopped_at}
    model, result = once(path if path.exists() else None, None)
    return {
        "stopped_at": stopped_at,
        "drawn": drawn[:3],
        "weights": model.state_dict(),
        "losses": [loss for p in result.curve for loss in (p.train_loss, p.validation_loss)],
        "test_loss": result.test.loss,
        "counted": (result.test.correct, result.test.answers, result.best_step),
    }


if __name__ == "__main__":
    index, size, folder = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    torch.set_num_threads(1)
    ranks = ALONE
    if size > 1:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo" if sys.platform == "linux" else "lo0")
        dist.init_process_group(
            "gloo", init_method=f"file://{folder}/meeting", rank=index, world_size=size
        )
        ranks = Joined()
    torch.save({name: ends(name, ranks, folder) for name in SCENARIOS}, folder / f"{index}-{size}")
    if size > 1:
        dist.destroy_process_group()
