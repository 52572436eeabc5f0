"""Peers whose calls no signature explains, each behind `forward(x, mask)`."""
