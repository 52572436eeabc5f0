"""CIFAR-10 (Krizhevsky 2009) in parts: which picture belongs to which split, in which order.

Test is the official test part. Validation, unless the set has one of its own, is held out of
train: the tenth that the hash of the grey pixels decides, fixed by content; under lra2021 rules the
last tenth in the order of the files, as in Long Range Arena (whose order was that of TFDS).

Pictures come in the order of their hashes, so that every form of the set gives the same rows and
the first of them are a fair sample; under lra2021 rules they come as they lie.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

from lra.core.dataset import SplitName
from lra.core.protocol import Rules
from tasks.contract import Example, OnDefect, Part
from tasks.sources.cifar10_files import PictureSet, picture_set
from tasks.sources.cifar10_pixels import PIXELS, Pictures
from tasks.sources.holdout import content_key, held_out


def picture_parts(source: str, rules: Rules) -> Sequence[Part]:
    """Return a part for each split that the set in `source` has.

    Tokens are 1024 grey values, uint8, row by row. A part is read whole, 60 MB of pixels at most.
    Raises `DataError` where the set is none; see `tasks.sources.cifar10_files` for its forms.
    """
    found = picture_set(source)
    parts = []
    for split in found.splits:
        shared = split == "train" and "validation" not in found.splits
        examples = partial(_examples, found, split, shared, rules)
        parts.append(Part(f"{split} pictures", examples, None if shared else split))
    return parts


def _examples(
    found: PictureSet, split: SplitName, shared: bool, rules: Rules, on_defect: OnDefect
) -> Iterator[Example]:
    """The pictures of a split; where it is shared, a tenth of them are for validation."""
    pictures, keys_N = _ordered(found.read(split, on_defect), rules)
    first_of_last_tenth = len(keys_N) - len(keys_N) // 10
    for place, (tokens, label) in enumerate(zip(*pictures, strict=True)):
        late = place >= first_of_last_tenth
        out = late if rules == "lra2021" else held_out(int(keys_N[place]))
        yield Example("validation" if shared and out else split, (tokens,), int(label))


def _ordered(batches: Iterable[Pictures], rules: Rules) -> tuple[Pictures, npt.NDArray[np.uint64]]:
    """All pictures in the order that the rules ask for, and their content keys."""
    none = Pictures(np.empty((0, PIXELS), np.uint8), np.empty(0, np.int64))
    grey, labels = zip(none, *batches, strict=True)
    grey_NP, labels_N = np.concatenate(grey), np.concatenate(labels)
    keys_N = np.array([content_key(tokens.tobytes()) for tokens in grey_NP], dtype=np.uint64)
    if rules == "lra2021":
        return Pictures(grey_NP, labels_N), keys_N
    # Where two pictures are the same, the label decides.
    order = np.lexsort((labels_N, keys_N))
    return Pictures(grey_NP[order], labels_N[order]), keys_N[order]
