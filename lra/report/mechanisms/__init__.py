"""What mechanisms are: their settings and versions, what they claim, what they attend to."""
