"""What other people published or wrote, beside what was measured here."""
