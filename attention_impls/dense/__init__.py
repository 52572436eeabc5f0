"""Exact softmax attention over all pairs."""
