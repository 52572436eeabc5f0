"""Identity: whether our code still behaves as the versions in records claim."""
