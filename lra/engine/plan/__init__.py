"""From a suite and flags to cells: which questions a run asks. Never torch."""
