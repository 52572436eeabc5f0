"""Labels of examples or of tokens: cross-entropy."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from lra.models.output import Output
from lra.training.batches import Batch
from lra.training.objectives.objective import Counts, Objective


class Labels(Objective):
    """Cross-entropy, each label alike; a label is right where it has the largest logit."""

    def loss(self, output: Output, batch: Batch) -> Tensor:
        """Return the cross-entropy summed over the labels, in nat, ()."""
        return F.cross_entropy(output.logits_LC.float(), batch.labels_L, reduction="sum")

    def tally(self, output: Output, batch: Batch) -> Counts:
        """Return the same with the number of correctly predicted labels."""
        loss = self.loss(output, batch)
        return Counts(loss, (output.logits_LC.argmax(dim=-1) == batch.labels_L).sum())
