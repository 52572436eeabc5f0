"""What figures prove and what they do not: growth, crossings. Never torch."""
