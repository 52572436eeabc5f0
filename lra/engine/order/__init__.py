"""Which cells are due, which come first, and how long they may take. Never torch."""
