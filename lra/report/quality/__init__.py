"""How accurate mechanisms are, what stands beside that, and how sure differences are."""
