"""A grid of cells on other machines, by Dask: the extra `cluster`. Never torch."""
