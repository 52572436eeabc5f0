"""From a suite and flags to the cells of a run. Never torch."""
