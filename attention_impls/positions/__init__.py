"""Position schemes, one per file; a scheme's name is its file's name."""
