"""From records to one tidy frame: which records take part, and their figures with their ids."""
