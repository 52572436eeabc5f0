"""Order of cells: which are due, which come first, how long they may take. Never torch."""
