"""Plain values that all other folders share. Nothing here imports torch."""
