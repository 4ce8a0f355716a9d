"""The layers that retry, and their product: each multiplies what the one before it sends."""

from __future__ import annotations

import numpy as np

from obs import inside, retries_flow
from obs.facts import Facts
from obs.series import Mask
from obs.ui.markup import show, tag
from obs.ui.screen import Screen
from obs.vocabulary import vocabularies


def title(system: str) -> str:
    """A system's own name."""
    return next((vocabulary.title for vocabulary in vocabularies() if vocabulary.id == system), system)


def draw(screen: Screen, facts: Facts, steps: Mask) -> None:
    """A line each layer with its attempts, and the product where there are two and more. `steps`: in which the worst is looked for."""
    _ = screen.reader
    window, step = inside.inside(facts), facts.grid.step
    rows = []
    for layer in retries_flow.layers(facts):
        attempts, retries = (inside.counted(values[None, :], window, step) for values in (layer.attempts, layer.retries))
        worst = inside.peak(facts.layers[layer.system], steps) if layer.system in facts.layers else None
        mean = attempts / (attempts - retries) if attempts and retries is not None and attempts > retries else None
        cells = [_.figure(_whole(attempts), "count"), _.figure(_whole(retries), "count"), _.figure(mean, "times"), _.figure(worst, "times")]
        rows.append(tag("tr", tag("td", title(layer.system)), [tag("td", cell, cls="number") for cell in cells]))
    product = inside.peak(facts.layers_product, steps)
    if product is not None:
        empty = [tag("td", "", cls="number")] * 3
        name = tag("td", tag("b", _("together, if one stands behind the other")))
        rows.append(tag("tr", name, empty, tag("td", tag("b", _.figure(product, "times")), cls="number")))
    note = _(
        "Each layer that retries multiplies what the one before it sends. Only layers whose metrics Prometheus scrapes are here: retries "
        "that clients make by themselves look like new requests. The OpenAI library makes two of each if nobody tells it otherwise."
    )
    why = facts.reading("gateway_retries").why
    heads = ("", _("Attempts"), _("Retries"), _("Attempts per request, mean"), _("at the worst"))
    table = tag("table", tag("thead", tag("tr", [tag("th", head) for head in heads])), tag("tbody", rows), cls="table fits")
    nothing = tag("div", _.tell(why) if why else _("No gateway is seen in this window."), cls="nothing")
    head = tag("div", _("Layers that retry"), cls="title", role="heading", aria_level=2)
    show(tag("section", head, tag("div", note, cls="note"), table if rows else nothing, cls="panel sheet layers"))


def _whole(count: float | None) -> float | None:
    return None if count is None or np.isnan(count) else float(round(count))
