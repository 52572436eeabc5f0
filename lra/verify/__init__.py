"""The conformance kit: claims of a mechanism, proved or refuted, law by law."""
