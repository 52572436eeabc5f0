"""Mixers that carry a state from position to position."""
