"""Analyses as every form for people shows them: made once, in words and figures, and drawn by the
terminal, Markdown, the page and the notebook in their own ways."""

from reports.show.view.call import Call, calls, worst_first

__all__ = ["Call", "calls", "worst_first"]
