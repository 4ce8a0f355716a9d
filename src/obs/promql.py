"""PromQL text: quoting, selectors, durations, filling templates. Everything that came from a person or a label passes through here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from string import Template

from obs.errors import CallError
from obs.text import say

_METRIC_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_LABEL_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_REGEX_SPECIAL = re.compile(r"([\\.+*?()|\[\]{}^$])")  # RE2's; re.escape would also escape blanks, which RE2 refuses
_UNSENDABLE = re.compile("[\x00\ud800-\udfff]")
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def quote(value: str) -> str:
    """A label value as a PromQL string literal (the rules of a Go string in double quotes)."""
    clean = value.encode("utf-8", "replace").decode("utf-8")  # a lone surrogate cannot be sent
    return '"' + "".join(_ESCAPES.get(c) or (f"\\u{ord(c):04x}" if ord(c) < 32 or ord(c) == 127 else c) for c in clean) + '"'


def label_name(name: str) -> str:
    """The name itself where a scope may use it; raises CallError otherwise (`__name__` and its like are Prometheus's own)."""
    if not _LABEL_NAME.fullmatch(name) or name.startswith("__"):
        raise CallError(
            say("“{label}” is not a label name. Use letters, digits and underscores, for example namespace=prod.", label=name[:80])
        )
    return name


def matcher(label: str, values: Iterable[str]) -> str:
    """Exactly this value, or exactly any of these."""
    wanted = tuple(dict.fromkeys(values))
    if any(_UNSENDABLE.search(value) for value in wanted):
        raise CallError(say("The value of “{label}” holds a NUL or bytes that are no text; no label value does.", label=label))
    if len(wanted) == 1:
        return f"{name(label)}={quote(wanted[0])}"
    anything = "|".join(_REGEX_SPECIAL.sub(r"\\\1", value) for value in wanted)
    return f"{name(label)}=~{quote(anything)}"


def name(label: str) -> str:
    """A label as it stands in a grouping or a matcher: in quotes where it is dotted (Prometheus 3). Raises CallError where it is none."""
    return quote(label) if "." in label and _LABEL_NAME.fullmatch(label.replace(".", "_")) else label_name(label)


def series(metric: str, inside: str) -> str:
    """The selector of a metric; a name that only Prometheus 3 knows (`gen_ai.server.request.duration`) stands inside the braces."""
    if _METRIC_NAME.fullmatch(metric):
        return f"{metric}{{{inside}}}"
    return f"{{{quote(metric)}, {inside}}}" if inside else f"{{{quote(metric)}, }}"


def by_names(metrics: Sequence[str], inside: str) -> str:
    """The selector of several metrics at once."""
    if len(metrics) == 1:
        return series(metrics[0], inside)
    names = quote("|".join(_REGEX_SPECIAL.sub(r"\\\1", metric) for metric in metrics))
    return "{" + ", ".join(part for part in (inside, f"__name__=~{names}") if part) + "}"


def selector(pairs: Iterable[tuple[str, tuple[str, ...]]], *extra: str) -> str:
    """The inside of the braces: the vocabulary's own matchers, then the scope's."""
    return ", ".join([part for part in extra if part] + [matcher(label, values) for label, values in pairs if values])


def duration(seconds: float) -> str:
    """A PromQL duration, exact to the millisecond: `90s`, `1500ms`."""
    milliseconds = max(1, round(seconds * 1000))
    return f"{milliseconds // 1000}s" if milliseconds % 1000 == 0 else f"{milliseconds}ms"


def fill(template: str, **holes: str) -> str:
    """A template with its `$holes` filled; what is filled in is never read as a template again. KeyError where a hole is unknown."""
    return Template(template).substitute(holes)


def tidy(promql: str) -> str:
    """The same query as a person would write it: no empty matchers left over."""
    return promql.replace(", }", "}").replace("{}", "").replace("{, ", "{")
