"""Attention whose pattern or weights are learned or hashed, not fixed."""
