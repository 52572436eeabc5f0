"""The sentences to read first."""
