"""The arena: measure attention mechanisms on long-sequence tasks, and their speed and memory."""

__version__ = "0.1.0"
