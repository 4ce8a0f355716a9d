"""The only owner of URL parameters: a `View` is what a link names, and nothing else reads or writes a query string.

Names and meaning are stable (docs/links.md): a link pasted into a ticket works in two years. Fields are added, never renamed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import parse_qs, quote_plus, urlsplit

from obs.errors import CallError
from obs.language import LANGUAGES
from obs.source import About
from obs.text import Message, Names, say
from obs.trial import TRIALS
from obs.verdict import ROW_IDS
from obs.window import Window, check, is_relative, parse_time, rfc3339, zone_info

PAGES = ("", "kv", "queue", "first-token", "retries", "memory", "replicas", "data", "timeline", "compare", "incidents")

# Words with a meaning of their own in a link: none of them can be a scope label.
_OWN = (
    "from",
    "to",
    "tz",
    "lang",
    "row",
    "compare_from",
    "compare_to",
    "change",
    "source",
    "bundle",
    "incident",
    "kiosk",
    "plan",
    "refresh",
    "view",
    "no_page",
)
_IGNORED = ("orgId", "theme", "viewPanel", "editPanel")  # Grafana's, which people paste along
RESERVED = frozenset((*_OWN, *_IGNORED, "timezone", "embed", "embed_options"))  # Grafana's zone; Streamlit's own
_TRACKING = re.compile(r"utm_\w+|fbclid|gclid|msclkid|mc_[ce]id")  # what mailers and chats append; nobody means it
_LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")  # Prometheus' rule for label names
_BUNDLE = re.compile(r"[A-Za-z0-9_-]{1,128}")
_INCIDENT = re.compile(r"[0-9a-f]{16}")
_PLAN = re.compile(r"[A-Za-z0-9_.~-]{1,3000}")  # `obs.memory.choice` knows its words
_REFRESH = re.compile(r"(\d{1,6})(s|m|h)")
_SECONDS = {"s": 1, "m": 60, "h": 3600}
LEAST_REFRESH, MOST_REFRESH = 15, 86400  # seconds: a moving window moves every 15 s
_SOURCE = re.compile(r"[^\x00-\x1f\x7f]{1,128}")
TURN_LEAST_SECONDS = 10  # a page on a wall screen; less cannot be read
DEFAULT_SECONDS = 3600.0  # the last hour; before `to` where only that is given


@dataclass(frozen=True)
class View:
    """What a link names. Times as in the link (None: the default); `zone` and `lang` "": the reader's browser's."""

    page: str = ""
    start: str | None = None
    end: str | None = None
    scope: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # label -> wanted values, any of them
    zone: str = ""
    lang: str = ""
    row: str | None = None
    compare: tuple[str, str] | None = None
    change: str | None = None  # the change that was tested between the two windows, by its id in `obs.trial`
    source: str | None = None  # name of a configured source
    bundle: str | None = None  # content id of a known bundle
    incident: str | None = None  # id of a saved incident
    kiosk: int = 0  # a wall screen: 1 stays on its page, more are the seconds after which it turns to the next one
    plan: str | None = None  # the planner's inputs on the GPU memory page, as `obs.memory.choice` writes them
    refresh: int | None = None  # seconds between two refreshes of a live window, 0 for never


def parse(page: str, params: Mapping[str, Sequence[str]]) -> tuple[View, tuple[Message, ...]]:
    """The view, and what did not parse: each of these fell back to its default. Of a repeated single value the last counts."""
    notes: list[Message] = []

    def one(name: str, read: Callable[[str], str]) -> str | None:
        text = next((value for value in reversed(params.get(name, ())) if value), None)
        try:
            return read(text) if text is not None else None
        except CallError as error:
            notes.append(say("{name} was ignored: {reason}", name=Names((name,)), reason=error.says))
            return None

    start, end = one("from", _time), one("to", _time)
    compare = one("compare_from", _time), one("compare_to", _time)
    if (compare[0] is None) != (compare[1] is None):
        notes.append(say("The comparison was left out: it needs both compare_from and compare_to."))
    view = View(
        page=page.strip("/"),
        start=start,
        end=end,
        scope=_scope(params, notes),
        zone=one("tz", _zone) or one("timezone", _zone) or "",
        lang=one("lang", _lang) or "",
        row=one("row", _row),
        compare=(compare[0], compare[1]) if compare[0] is not None and compare[1] is not None else None,
        change=one("change", _change),
        source=one("source", _source),
        bundle=one("bundle", _bundle),
        incident=one("incident", _incident),
        kiosk=_kiosk(params["kiosk"]) if params.get("kiosk") else 0,
        plan=one("plan", _plan),
        refresh=int(often) if (often := one("refresh", _refresh)) is not None else None,
    )
    for asked in params.get("no_page", ())[-1:]:
        notes.append(say("There is no page {page}; this is the diagnosis.", page=Names((f"/{asked}",))))
    if view.source and view.bundle:
        notes.append(say("The link names both a source and a recording; the recording is shown."))
        view = replace(view, source=None)
    return view, tuple(notes)


def _kiosk(values: Sequence[str]) -> int:
    last = next(filter(None, reversed(values)), "1")
    if last in ("0", "false"):
        return 0
    seconds = int(last) if last.isascii() and last.isdigit() and len(last) < 5 else 1
    return seconds if seconds >= TURN_LEAST_SECONDS else 1


def resolve(view: View, now: float, about: About | None = None, *, browser_zone: str = "UTC") -> Window:
    """The window that a view means; a CallError where it cannot be judged (`obs.window.check`).

    On a bundle `now` is its end, and without times what it opens on. Otherwise the default is the last hour. Times are whole
    seconds, so that a pinned link names exactly this window. A link without a zone has its times in `browser_zone`.
    """
    held = Window(about.start, about.end) if about and about.start is not None and about.end is not None else None
    now = held.end if held else float(int(now))
    if about and held and view.start is None and view.end is None:
        return check(Window(*about.opening) if about.opening else held, now, held)
    window = check(_window(view.start, view.end, now, view.zone or browser_zone), now, held)
    return replace(window, live=window.live and held is None and is_relative(view.end or "now"))  # an end still to come does not move


def comparison(view: View, now: float, about: About | None = None, *, browser_zone: str = "UTC") -> Window | None:
    """The window that the view is compared with, None where it names none; limits as for `resolve`."""
    if view.compare is None:
        return None
    return resolve(replace(view, start=view.compare[0], end=view.compare[1]), now, about, browser_zone=browser_zone)


def params(view: View) -> list[tuple[str, str]]:
    """The query parameters of a view, in a fixed order; what is default is left out. `parse` reads them back to the same view."""
    pairs = [("from", view.start), ("to", view.end)]
    pairs += [(label, value) for label, values in sorted(view.scope.items()) for value in values]
    pairs += [("tz", view.zone), ("lang", view.lang), ("row", view.row)]
    pairs += zip(("compare_from", "compare_to"), view.compare or (), strict=False)
    pairs += [("change", view.change), ("source", view.source), ("bundle", view.bundle)]
    pairs += [("incident", view.incident), ("kiosk", f"{view.kiosk:d}" if view.kiosk else None), ("plan", view.plan)]
    pairs += [("refresh", None if view.refresh is None else _often(view.refresh))]
    return [(name, value) for name, value in pairs if value]


def pinned(view: View, window: Window, *, zone: str = "", lang: str = "", compare: Window | None = None) -> View:
    """The view to share: absolute times, the sharer's zone and language, nothing that depends on who opens it or when, and no more than
    its page shows.

    `window` and `compare` are the resolved ones; `zone` and `lang` fill what the view leaves to the browser.
    """
    return replace(
        view,
        start=rfc3339(window.start),
        end=rfc3339(window.end),
        zone=view.zone or zone or "UTC",
        lang=view.lang or lang or "en",
        compare=(rfc3339(compare.start), rfc3339(compare.end)) if compare else view.compare,
        plan=view.plan if view.page == "memory" else None,
        refresh=None,  # its window stands still
    )


def url(base: str, view: View) -> str:
    """The address of a view. `base` is where the dashboard is served ("" for a link within it)."""
    query = "&".join(f"{name}={quote_plus(value, errors='replace')}" for name, value in params(view))
    return f"{base.rstrip('/')}/{view.page}" + (f"?{query}" if query else "")


def parse_url(address: str) -> View:
    """The view of an address that `url` made; what does not parse falls back to its default."""
    parts = urlsplit(address)
    return parse(parts.path.rpartition("/")[2], parse_qs(parts.query))[0]


def is_pinned(view: View) -> bool:
    """Whether the link means the same whenever it is opened."""
    times = (view.start, view.end, *(view.compare or ()))
    return all(time is not None and not is_relative(time) for time in times)


def _window(start: str | None, end: str | None, now: float, zone: str) -> Window:
    last = parse_time(end or "now", now, zone, end=True)
    first = last - DEFAULT_SECONDS if start is None else parse_time(start, now, zone)
    return Window(first, last, live=end is None or end.strip() == "now")


def _scope(params: Mapping[str, Sequence[str]], notes: list[Message]) -> dict[str, tuple[str, ...]]:
    """Every parameter that is no reserved word is a label; Grafana's `var-namespace=` is `namespace=`. Empty values are no filter."""
    scope: dict[str, list[str]] = {}
    for name, values in params.items():
        label = name.removeprefix("var-")
        if name in _IGNORED:
            notes.append(say("{name} was ignored: it belongs to Grafana and means nothing here.", name=Names((name,))))
        elif name in RESERVED or _TRACKING.fullmatch(name) or not any(values):
            continue
        elif label in RESERVED or label.startswith("__") or not _LABEL.fullmatch(label):
            notes.append(say("{name} was ignored: it cannot be the name of a label.", name=Names((name,))))
        else:
            scope.setdefault(label, []).extend(value for value in values if value)
    return {label: tuple(dict.fromkeys(values)) for label, values in scope.items()}


def _time(text: str) -> str:
    parse_time(text, now=1e9)
    return text


def _zone(text: str) -> str:
    if text == "browser":  # Grafana's word for what is the default here
        return ""
    return zone_info(text).key


def _lang(text: str) -> str:
    code = re.split("[-_]", text.lower())[0]
    if code not in LANGUAGES:
        raise CallError(say("There is no language {text}; there are {known}.", text=Names((text,)), known=Names(LANGUAGES)))
    return code


def _row(text: str) -> str:
    if text not in ROW_IDS:
        raise CallError(say("There is no row {text}; there are {known}.", text=Names((text,)), known=Names(ROW_IDS)))
    return text


def _change(text: str) -> str:
    if text not in TRIALS:
        raise CallError(say("There is no change {text}; there are {known}.", text=Names((text,)), known=Names(tuple(TRIALS))))
    return text


def _plan(text: str) -> str:
    if not _PLAN.fullmatch(text):
        raise CallError(say("This cannot be a plan."))
    return text


def _refresh(text: str) -> str:
    """Seconds, as a text: `30s`, `1m`, `off`. More often than the window moves would show nothing new."""
    if text in ("off", "0"):
        return "0"
    found = _REFRESH.fullmatch(text)
    if found is None:
        raise CallError(say("{text} is no interval; write 30s, 1m or off.", text=Names((text,))))
    seconds = int(found[1]) * _SECONDS[found[2]]
    return str(min(MOST_REFRESH, max(LEAST_REFRESH, seconds)) if seconds else 0)


def _often(seconds: int) -> str:
    if not seconds:
        return "off"
    return f"{seconds // 60}m" if seconds % 60 == 0 else f"{seconds}s"


def _source(text: str) -> str:
    if not _SOURCE.fullmatch(text):
        raise CallError(say("{text} cannot be the name of a source.", text=Names((text,))))
    return text


def _bundle(text: str) -> str:
    if not _BUNDLE.fullmatch(text):
        raise CallError(say("{text} cannot be the id of a recording.", text=Names((text,))))
    return text


def _incident(text: str) -> str:
    if not _INCIDENT.fullmatch(text):
        raise CallError(say("{text} cannot be the id of an incident.", text=Names((text,))))
    return text
