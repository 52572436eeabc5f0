"""Loading of records into one tidy frame: their selection, and their figures with ids."""
