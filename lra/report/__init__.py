"""From records alone to a page, tables and plots. Nothing here imports torch."""

from lra.report.render import Rendered, render

__all__ = ["Rendered", "render"]
