"""Processes that run cells: the pool, the fork server, the worker, and their exit status."""
