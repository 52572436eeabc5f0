"""Attention through a low-rank view of keys and values."""
