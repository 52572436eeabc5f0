"""Stores held against each other: compare, history and the words of a check. Never torch."""
