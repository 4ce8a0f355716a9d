"""The report as one HTML file. Jinja escapes every text on its way in; the page has no script and may load nothing (its own policy)."""

from __future__ import annotations

from functools import lru_cache

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from obs.retrospective.chart import HEIGHT, WIDTH
from obs.retrospective.document import Document

MARKS = {"applies": "●", "suspected": "▲", "clear": "✓", "unknown": "?"}


@lru_cache(maxsize=1)
def _template() -> Template:
    found = Environment(
        loader=PackageLoader("obs.retrospective", "."), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return found.get_template("report.html.jinja")


def written(doc: Document) -> str:
    """The file's content."""
    return _template().render(doc=doc, w=doc.words, marks=MARKS, width=WIDTH, height=HEIGHT)
