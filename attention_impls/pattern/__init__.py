"""Exact softmax over a fixed pattern of pairs."""
