"""The arena: measure attention mechanisms on long-sequence tasks, and their speed and memory.

`lra.load(store)` returns the records of a store as a data frame.
"""

# Import nothing that Python has not loaded itself: `python -m lra` has yet to put the current
# folder last.
from os import PathLike

from lra.core.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    import pandas as pd

__all__ = ["__version__", "load"]


def load(store: str | PathLike[str]) -> "pd.DataFrame":
    """Return what a store's records say, one metric of one cell per row.

    The columns are those of report.csv: the question (`mechanism`, `task`, `length`, `mode`, ...),
    the outcome (`status`, `metric`, `value` with its `unit`: seconds, bytes, joules, shares of 1),
    and the `machine` and `record` that answered. The newest of several records of one question
    counts. A figure that does not apply or was not measured is missing; `failure` and `reason` say
    why. Conformance checks, pictures and the ceilings of machines are left out.

    Raises `LraError` where there is no such folder, or it cannot be read, and on a system without
    locks of files (Windows); a record that cannot be read is a warning. Needs no torch.
    """
    from pathlib import Path

    from lra.core.errors import LraError
    from lra.core.system import why_unsupported

    if why := why_unsupported():
        raise LraError(why)
    from lra.report.load.frame import public
    from lra.report.load.select import join
    from lra.store import Store

    return public(join(Store(Path(store)).existing().records(), []).figures)
