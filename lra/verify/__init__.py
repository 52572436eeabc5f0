"""The conformance kit: what a mechanism claims, proved or refuted, law by law."""
