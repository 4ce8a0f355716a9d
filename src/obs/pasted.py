"""Times as mails, logs, terminals and other pages write them, as ISO 8601. Pure; `obs.window` reads what this gives.

A date of digits with slashes is read where the year comes first only: 03/04/2026 is March to some and April to others.
"""

from __future__ import annotations

import re
from urllib.parse import unquote_plus

_MONTHS = ("jan ene", "feb", "mar", "apr abr", "may", "jun", "jul", "aug ago", "sep", "oct", "nov", "dec dic")
_WEEKDAY = r"(?:[a-záé]{2,9}\.?,?\s+)?"  # says nothing that the date does not
_MONTH = r"(?P<month>[a-z]{3,10})\.?"
_TIME = r"(?P<hour>\d{1,2}):(?P<minute>\d\d)(?::(?P<second>\d\d)(?P<part>[.,]\d{1,9})?)?(?:\s*(?P<half>[ap])\.?\s?m\.?)?"
_ZONE = r"(?:\s*(?P<zone>z|utc|gmt|[+-]\d\d:?\d\d)(?:\s+(?:utc|gmt|[a-z]{3,5}))?)?"  # after an offset, its name
_CLOCK = rf"{_TIME}{_ZONE}"
_OF = r"(?:\.?\s+(?:de\s+)?|-|/)"
_AT = r"(?:at\s+|a\s+las?\s+)?"
_FORMS = tuple(
    re.compile(form)
    for form in (
        # 30 Nov 2026 11:02; Mon, 30 Nov 2026 11:02:24 GMT; 30 de noviembre de 2026 a las 9:02; 30-Nov-2026; 30/Nov/2026:11:02:24 +0000
        rf"{_WEEKDAY}(?P<day>\d{{1,2}}){_OF}{_MONTH},?(?:\s*(?:de\s+)?|-|/)(?P<year>\d{{4}})(?:(?:,?\s+{_AT}|:){_CLOCK}|\s*(?P<utc>z|utc|gmt))?",
        # Nov 30, 2026, 11:02 AM
        rf"{_WEEKDAY}{_MONTH}\s+(?P<day>\d{{1,2}}),?\s+(?P<year>\d{{4}})(?:,?\s+{_AT}{_CLOCK})?",
        # Mon Nov 30 11:02:24 UTC 2026
        rf"{_WEEKDAY}{_MONTH}\s+(?P<day>\d{{1,2}})\s+{_CLOCK}\s+(?P<year>\d{{4}})",
        # 2026/11/30 11:02:24; 2026-11-30 11:02:24.123456 +0000 UTC; 2026-11-30, 11:02 pm
        rf"(?P<year>\d{{4}})(?P<sep>[/-])(?P<number>\d\d)(?P=sep)(?P<day>\d\d)(?:(?:t|,?\s+){_CLOCK})?",
        # 30.11.2026 11:02
        rf"(?P<day>\d{{1,2}})\.(?P<number>\d{{1,2}})\.(?P<year>\d{{4}})(?:,?\s+{_CLOCK})?",
        # 20261130T110224Z
        rf"(?P<year>\d{{4}})(?P<number>\d\d)(?P<day>\d\d)t(?P<hour>\d\d)(?P<minute>\d\d)(?P<second>\d\d)?{_ZONE}",
    )
)
_AROUND = "\"'`“”‘’«»<>[]() \t\r\n"
_LONGEST = 80


def bare(text: str) -> str:
    """The text without the quotes and brackets that it was copied with."""
    return text.strip(_AROUND)


def pair(text: str) -> tuple[str, str] | None:
    """The two times of a window that was copied whole: a link or its parameters (`from=...&to=...`), or Grafana's copied time range
    (`{"from": "now-6h", "to": "now"}`); None where it is no such thing."""
    found = []
    for word in ("from", "to"):
        match = re.search(rf'"{word}"\s*:\s*"([^"]{{1,80}})"|(?:^|[?&\s]){word}=([^&#\s]{{1,160}})', text)
        if match is None:
            return None
        found.append(match[1] or unquote_plus(match[2]))
    return found[0], found[1]


def iso(text: str) -> str:
    """The time as ISO 8601, with an offset where it has one. Raises ValueError where it has no known form."""
    if len(text) > _LONGEST:
        raise ValueError(text)
    found = next((match.groupdict() for form in _FORMS if (match := form.fullmatch(text.lower()))), None)
    if found is None:
        raise ValueError(text)
    name = found.get("month")
    month = int(found["number"]) if name is None else next((i for i, names in enumerate(_MONTHS, 1) if name[:3] in names.split()), 0)
    day = f"{found['year']}-{month:02d}-{int(found['day']):02d}"
    if not found.get("hour"):
        return f"{day}T00:00{'Z' if found.get('utc') else ''}"
    hour, half = int(found["hour"]), found.get("half")
    if half:
        if not 1 <= hour <= 12:
            raise ValueError(text)
        hour = hour % 12 + (12 if half == "p" else 0)
    zone = found.get("zone") or ""
    clock = f"{hour:02d}:{found['minute']}:{found.get('second') or '00'}{(found.get('part') or '')[:7].replace(',', '.')}"
    return f"{day}T{clock}{zone if zone[:1] in ('+', '-') else 'Z' if zone else ''}"
