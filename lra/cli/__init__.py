"""The command line: one verb, one file. A verb imports its machinery only when it runs."""
