"""Bodies: the networks between embedding and head, one file each."""
