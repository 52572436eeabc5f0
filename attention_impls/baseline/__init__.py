"""Reference points that are no attention: the floor and its like."""
