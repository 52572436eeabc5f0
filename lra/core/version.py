"""The version of the arena, for records and the package."""

__version__ = "0.1.0"
