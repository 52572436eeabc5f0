"""Comparisons of stores: compare, history and the sentences of a check. Never torch."""
