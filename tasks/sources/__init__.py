"""Readers of real data, and the Arrow form in which prepared sets lie on disk."""
