"""Seeded generators behind the tasks: integer arithmetic, the same bytes on every machine."""
