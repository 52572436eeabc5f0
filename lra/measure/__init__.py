"""Measures: one file each, and nothing between them and torch."""
