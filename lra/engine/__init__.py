"""Execution of cells: jobs, the worker processes that run them, and their machine."""
