"""Work of a worker on a cell: one kind, one file, named as the kind's tag."""
