"""A report as files: HTML, Markdown, LaTeX and CSV."""
