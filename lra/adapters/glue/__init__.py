"""Peers with calls that no signature explains, each behind `forward(x, mask)`."""
