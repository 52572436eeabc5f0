"""The gate: a check against a baseline or another revision. Never torch."""
