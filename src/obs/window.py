"""A stretch of time as a link or a person names it, and as Unix seconds.

Pure: `now` is always passed in, so that a bundle can have its own. Relative forms are Grafana's date math: `now`, `now-1h`,
`now/d`, `now-1d/d`; days and longer are calendar units in the zone, weeks begin on Monday, and an end rounds up (`to=now/d` is the
end of today), as there. Times without an offset are in the zone.
"""

from __future__ import annotations

import re
from calendar import monthrange
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from obs import pasted
from obs.errors import CallError
from obs.text import Names, Quantity, say

LONGEST_SECONDS = 31 * 86400.0  # Prometheus' default retention is 15 days; a month is the longest retrospective
_MILLISECONDS_FROM = 1e11  # as Unix seconds this would be the year 5138
_LAST = 253402300799.0  # 9999-12-31T23:59:59Z, the last that a calendar can show

_FINE = re.compile(r"\d{16}|\d{19}")  # micro- and nanoseconds
_NUMBER = re.compile(r"\d{1,15}(\.\d{1,9})?")
_RELATIVE = re.compile(r"now((?:[+-]\d{1,6}[smhdwMy](?:\d{1,6}[smhdwMy])*)|(?:/[smhdwMy]))*")
_OPERATION = re.compile(r"([+-])((?:\d+[smhdwMy])+)|/([smhdwMy])")
_PART = re.compile(r"(\d+)([smhdwMy])")
_OFFSET_AFTER_SPACE = re.compile(r"(T\d\d:\d\d(?::\d\d(?:\.\d+)?)?) (\d\d:?\d\d)$")  # a `+` that a URL has turned into a space
_ISO = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d.*)?")
_FIXED = {"s": 1, "m": 60, "h": 3600}


@dataclass(frozen=True)
class Window:
    """From `start` to `end`, Unix seconds UTC. `live` where the end was given as `now` (it moves when the page refreshes)."""

    start: float
    end: float
    live: bool = False

    @property
    def seconds(self) -> float:
        """Length."""
        return self.end - self.start

    def shift(self, fraction: float) -> Window:
        """The window moved by a part of its own length: -0.5 is half a window earlier."""
        by = self.seconds * fraction
        return Window(self.start + by, self.end + by)

    def zoom_out(self, factor: float = 2.0) -> Window:
        """The window `factor` times as long around the same middle, at most the longest there is."""
        half = min(self.seconds * factor, LONGEST_SECONDS) / 2
        middle = (self.start + self.end) / 2
        return Window(middle - half, middle + half)

    def until(self, now: float) -> Window:
        """The window moved back, with its length, so that it does not end after `now`."""
        late = max(0.0, self.end - now)
        return Window(self.start - late, self.end - late, self.live)


def zone_info(name: str) -> ZoneInfo:
    """The time zone of an IANA name; CallError where there is none. A name never leaves the zone database's folder."""
    try:
        if not re.fullmatch(r"[A-Za-z0-9_+/-]{1,64}", name):
            raise ZoneInfoNotFoundError(name)
        return ZoneInfo("UTC" if name.upper() in ("UTC", "Z") else name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise CallError(say("There is no time zone {zone}; give a name such as Europe/Madrid or UTC.", zone=Names((name,)))) from error


def is_relative(text: str) -> bool:
    """Whether a time moves with `now`."""
    return _RELATIVE.fullmatch(pasted.bare(text)) is not None


def rfc3339(at: float) -> str:
    """Unix seconds as RFC 3339 in UTC; the fraction, in milliseconds, only where there is one."""
    moment = datetime.fromtimestamp(round(at, 3), UTC)
    return moment.isoformat(timespec="milliseconds" if moment.microsecond else "seconds").replace("+00:00", "Z")


def parse_time(text: str, now: float, zone: str = "UTC", *, end: bool = False) -> float:
    """Unix seconds of a time as a link or a person writes it. `end` where it ends a window: `/d` then rounds up.

    RFC 3339, Unix seconds or milliseconds (1e11 and more; micro- and nanoseconds where they have 16 and 19 digits), Grafana's relative
    forms, `2026-11-30 11:02[:24]`, `30 Nov 2026 11:02` (months in English or Spanish), and what `obs.pasted` knows.
    """
    wanted = pasted.bare(text)
    local = zone_info(zone)
    try:
        if _FINE.fullmatch(wanted):
            at = int(wanted) / (1e6 if len(wanted) == 16 else 1e9)
        elif _NUMBER.fullmatch(wanted):
            number = float(wanted)
            at = number / 1000 if number >= _MILLISECONDS_FROM else number
        elif _RELATIVE.fullmatch(wanted):
            at = _relative(wanted, now, local, end)
        else:
            at = _calendar(wanted, local)
    except (ValueError, OverflowError) as error:
        raise CallError(
            say(
                "{text} is no time; write 2026-11-30T11:02:24Z, 2026-11-30 11:02, Unix seconds or milliseconds, or now-1h.",
                text=Names((text,)),
            )
        ) from error
    if not 0 <= at <= _LAST:
        raise CallError(say("The time {text} lies outside the calendar, 1970 to 9999.", text=Names((text,))))
    return at


def _calendar(text: str, local: ZoneInfo) -> float:
    text = re.sub(r"(\d)\s*(UTC|GMT)$", r"\1Z", _OFFSET_AFTER_SPACE.sub(r"\1+\2", text), flags=re.IGNORECASE)
    try:
        if not _ISO.fullmatch(text):
            raise ValueError(text)
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = datetime.fromisoformat(pasted.iso(text))
    return (moment if moment.tzinfo else moment.replace(tzinfo=local)).timestamp()


def _relative(text: str, now: float, local: ZoneInfo, end: bool) -> float:
    at = now
    for sign, amounts, rounding in _OPERATION.findall(text):
        for amount, unit in _PART.findall(amounts):
            at = _add(at, int(amount) * (-1 if sign == "-" else 1), unit, local)
        if rounding:
            floor = _floor(at, rounding, local)
            at = _add(floor, 1, rounding, local) if end else floor
    return at


def _add(at: float, amount: int, unit: str, local: ZoneInfo) -> float:
    """`amount` units later: seconds to hours by the clock, days and longer by the calendar (the same time of day)."""
    if unit in _FIXED:
        return at + amount * _FIXED[unit]
    moment = datetime.fromtimestamp(at, local)
    if unit in "dw":
        return (moment + timedelta(days=amount * (7 if unit == "w" else 1))).timestamp()
    months = moment.year * 12 + moment.month - 1 + amount * (12 if unit == "y" else 1)
    year, month = months // 12, months % 12 + 1
    return moment.replace(year=year, month=month, day=min(moment.day, monthrange(year, month)[1])).timestamp()


def _floor(at: float, unit: str, local: ZoneInfo) -> float:
    moment = datetime.fromtimestamp(at, local)
    if unit in "sm":
        return at // _FIXED[unit] * _FIXED[unit]
    moment = moment.replace(minute=0, second=0, microsecond=0)
    if unit != "h":
        moment = moment.replace(hour=0, fold=0)
    if unit == "w":
        moment -= timedelta(days=moment.weekday())
    if unit in "My":
        moment = moment.replace(day=1)
    return (moment.replace(month=1) if unit == "y" else moment).timestamp()


def check(window: Window, now: float, held: Window | None = None) -> Window:
    """The window, cut at `now`, where it can be judged; otherwise a CallError. The only place that knows the limits.

    `held` is the stretch of a source that holds no other (a bundle, whose end is its `now`).
    """
    to_come = say("The window starts at {start}, which is still to come; choose an earlier start.", start=rfc3339(window.start))
    if window.seconds < 0 and window.start > now and held is None:  # a start alone: the end is now
        raise CallError(to_come)
    if window.seconds < 0:
        raise CallError(
            say(
                "The window ends at {end}, before it starts at {start}; swap the two.", end=rfc3339(window.end), start=rfc3339(window.start)
            )
        )
    if window.seconds == 0:
        raise CallError(say("The window is 0 s long; give an end after its start."))
    if held and (window.start >= held.end or window.end <= held.start):
        raise CallError(
            say(
                "The window lies outside the recording, which holds {start} to {end}; choose a window within it.",
                start=rfc3339(held.start),
                end=rfc3339(held.end),
            )
        )
    if window.start >= now:
        raise CallError(to_come)
    cut = Window(window.start, now, live=True) if window.end > now else window
    if cut.seconds > LONGEST_SECONDS:
        raise CallError(
            say(
                "The window is {length} long, and the longest is {longest}; choose a shorter one.",
                length=Quantity(cut.seconds, "seconds"),
                longest=Quantity(LONGEST_SECONDS, "seconds"),
            )
        )
    return cut
