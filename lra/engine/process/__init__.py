"""Processes that answer cells: the pool, the fork server, the worker, and how they end."""
