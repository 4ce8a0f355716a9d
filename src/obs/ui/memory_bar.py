"""The GPU's memory as one bar and its parts in words: each with its size in GB and GiB and whether it is measured, computed or assumed."""

from __future__ import annotations

from collections.abc import Sequence

from obs.gpu_use import Part
from obs.memory.figure import Band, Figure, origin_title
from obs.ui.markup import Html, tag
from obs.ui.reader import Reader


def bar(parts: Sequence[Part], _: Reader) -> Html:
    """Widths by size; of a band its middle. What is free is the ground."""
    total = sum(max(0.0, _middle(part.size)) for part in parts) or 1.0
    blocks = []
    for part in parts:
        width = 100 * max(0.0, _middle(part.size)) / total
        words = f"{_.tell(part.title)}: {_.tell(part.size.says)}"
        name = tag("span", _.tell(part.title)) if width > 9 else None
        blocks.append(tag("span", name, cls=f"fill {part.kind}", style=f"width:{width:.2f}%", title=words))
    spoken = "; ".join(f"{_.tell(part.title)} {_.tell(part.size.says)}" for part in parts)
    return tag("div", blocks, cls="fills", role="img", aria_label=spoken)


def table(parts: Sequence[Part], _: Reader) -> Html:
    """The same as a table."""
    heads = [_("Part"), _("Size"), _("Origin"), _("How it is known")]
    rows = [
        tag(
            "tr",
            tag("th", tag("i", cls=f"fill {part.kind}", aria_hidden="true"), _.tell(part.title), scope="row"),
            tag("td", _.tell(part.size.says), data_head=heads[1]),
            tag("td", origin(part.size, _), data_head=heads[2]),
            tag("td", _.tell(part.size.how), cls="how"),
        )
        for part in parts
    ]
    head = tag("thead", tag("tr", [tag("th", words, scope="col") for words in heads]))
    return tag("table", head, tag("tbody", rows), cls="table parts-table")


def origin(size: Figure | Band, _: Reader) -> Html:
    """The word beside a figure."""
    return tag("span", _.tell(origin_title(size.origin)), cls=f"origin {size.origin.value}")


def _middle(size: Figure | Band) -> float:
    return size.value if isinstance(size, Figure) else (size.low + size.high) / 2
