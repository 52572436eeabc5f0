"""Running cells: what is asked of a worker, the processes that answer, and their machine."""
