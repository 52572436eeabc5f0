"""Plain values that every room shares. Nothing here imports torch."""
