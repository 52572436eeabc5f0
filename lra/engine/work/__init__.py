"""What a worker does with a cell: one kind, one file, named as the kind's tag."""
