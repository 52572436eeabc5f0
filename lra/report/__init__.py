"""From records alone to one page: HTML, Markdown, CSV and plots. Nothing here imports torch."""

from lra.report.render import Rendered, render

__all__ = ["Rendered", "render"]
