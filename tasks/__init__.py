"""Long-sequence tasks, one per file; a task's name is its file's name. No torch here."""
