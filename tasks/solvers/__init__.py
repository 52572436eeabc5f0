"""Exact solvers and rules of thumb of the tasks: no data is made here."""
