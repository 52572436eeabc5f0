"""Attention mechanisms, one per file; a mechanism's name is its file's name."""
