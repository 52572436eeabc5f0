"""The version of the arena, which records and the package carry."""

__version__ = "0.1.0"
