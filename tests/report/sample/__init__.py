"""Records built in code: small, fixed, and with every kind of ending; a file for each kind."""

from .accuracies import baseline, quality
from .errors import error
from .outcomes import PROVENANCE, failure, with_metrics
from .pictures import shown
from .profiles import profile
from .settings import GPU, HERE, LENGTHS, MODEL, THERE, TRAINING, data, edited, mechanism
from .stores import store
from .timings import ceiling, efficiency

__all__ = [
    "GPU",
    "HERE",
    "LENGTHS",
    "MODEL",
    "PROVENANCE",
    "THERE",
    "TRAINING",
    "baseline",
    "ceiling",
    "data",
    "edited",
    "efficiency",
    "error",
    "failure",
    "mechanism",
    "profile",
    "quality",
    "shown",
    "store",
    "with_metrics",
]
