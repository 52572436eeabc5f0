"""Work of a worker on a cell: a file for each kind of cell, named by the kind's tag."""
