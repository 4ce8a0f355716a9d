"""The report of a window for a retrospective: one self-contained HTML file, or Markdown, with the same content (`obs report`)."""

from __future__ import annotations

from obs.report import Report
from obs.retrospective.document import document
from obs.retrospective.html import written as html
from obs.retrospective.markdown import written as markdown

FORMATS = (".html", ".md")


def to_html(report: Report) -> str:
    """One HTML file: charts are drawn in it, and it asks for nothing from outside."""
    return html(document(report))


def to_markdown(report: Report) -> str:
    """The same as Markdown, without the charts."""
    return markdown(document(report))
