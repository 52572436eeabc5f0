"""The machine under a run: its parts, its libraries, and its lock for timings. Never torch."""
