"""Report: a page, tables and plots, from records alone. Nothing here imports torch."""

from lra.report.render import Rendered, render

__all__ = ["Rendered", "render"]
