"""Who reads: a language and a time zone. Everything on the screen that is words, figures or times goes through a `Reader`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import numpy as np

from obs import language
from obs.series import Array
from obs.text import Message, Quantity, Sentences, Value
from obs.window import zone_info

# A figure and its unit stay on one line.
_UNIT = re.compile(r"(?<=\d) (?=(?:%|x|ms|s|min|h|d|/s|B|[KMGT]i?B|kB|tokens?|tokens/s)(?!\w))")


@dataclass(frozen=True)
class Reader:
    """Called as `_("Window")` it translates a literal of the screen; the catalogues are fed by the name `_`."""

    lang: str = "en"
    zone: str = "UTC"
    dated: bool = False  # the window is not of one day: a time of day alone would not say which
    drawn: tuple[float, float] | None = None  # the window that is shown: in its charts time goes on evenly, whatever the zone's clock does

    def __call__(self, template: str, **values: Value) -> str:
        return _joined(language.render(Message(template, values), self.lang, self.zone))

    def tell(self, message: Message | Sentences) -> str:
        """A message of the core."""
        return _joined(language.render(message, self.lang, self.zone))

    def figure(self, value: float | None, unit: str) -> str:
        """A figure with its unit, which is not broken over two lines; a dash where there is none."""
        return language.quantity_text(Quantity(float("nan") if value is None else value, unit), self.lang).replace(" ", "\u00a0")

    def moment(self, at: float) -> datetime:
        """A time in the reader's zone."""
        return datetime.fromtimestamp(at, zone_info(self.zone))

    def clock(self, at: float, seconds: bool = True) -> str:
        """The time of day."""
        moment = self.moment(at)
        return moment.strftime("%H:%M:%S" if seconds else "%H:%M") + language.which(moment)

    def day(self, at: float) -> str:
        """The date without the year, as `30 Nov`."""
        return _date(self.moment(at), "d MMM", self.lang)

    def date(self, at: float) -> str:
        """The date with the year."""
        return _date(self.moment(at), "d MMM y", self.lang)

    def span(self, start: float, end: float | None, seconds: bool = True) -> str:
        """`11:02:24 – 11:08:55`, with the dates where it is not all one day."""
        _ = self  # the name by which the catalogues find a sentence
        if end is None:
            return _("since {time}", time=f"{self.day(start)} {self.clock(start, seconds)}" if self.dated else self.clock(start, seconds))
        if not self.dated and self.one_day(start, end):
            return f"{self.clock(start, seconds)} – {self.clock(end, seconds)}"
        return f"{self.day(start)} {self.clock(start, seconds)} – {self.day(end)} {self.clock(end, seconds)}"

    def window(self, start: float, end: float) -> str:
        """A window for the bar, with its date."""
        seconds = bool(start % 60 or end % 60)
        if self.one_day(start, end):
            return f"{self.date(start)}, {self.clock(start, seconds)} – {self.clock(end, seconds)}"
        return self.span(start, end, seconds)

    def one_day(self, start: float, end: float) -> bool:
        """Whether both are of the same day in the reader's zone."""
        return self.moment(start).date() == self.moment(end).date()

    def length(self, seconds: float) -> str:
        """A length of time with both of its leading units: `6 min 31 s`, `1 h 8 min`."""
        whole = round(seconds)
        for size, unit, small, part in ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
            if whole >= size:
                rest = whole % size // small
                return f"{whole // size} {unit}" + (f" {rest} {part}" if rest else "")
        return f"{whole} s"

    def wall(self, times: Array) -> Array:
        """The zone's wall clock as if it were UTC, for charts on a UTC scale: the right time of day in every browser. Where the clock is
        changed within the window it goes on as at the window's beginning, and the labels are moved (`changes`)."""
        if self.drawn is not None:
            return times + self._offset(self.drawn[0])
        quarters, place = np.unique(times // 900, return_inverse=True)  # zones change their offset on quarter hours at the finest
        return times + np.array([self._offset(quarter * 900) for quarter in quarters.tolist()], dtype=np.float64)[place]

    def unwall(self, wall: float) -> float:
        """The time of a place in a chart of the window, Unix seconds."""
        if self.drawn is not None:
            return wall - self._offset(self.drawn[0])
        return datetime.fromtimestamp(wall, UTC).replace(tzinfo=zone_info(self.zone)).timestamp()

    def changes(self) -> list[tuple[float, float]]:
        """Where the zone's clock is changed within the window: (place in the charts, seconds that it is put forward; back: below 0)."""
        if self.drawn is None:
            return []
        found, (start, end) = [], self.drawn
        for before, after in pairwise([*np.arange(start, end, 86400.0).tolist(), end]):
            old, new = self._offset(before), self._offset(after)
            first, last = int(before), int(after)
            while old != new and last - first > 1:
                middle = (first + last) // 2
                first, last = (middle, last) if self._offset(middle) == old else (first, middle)
            if old != new:
                found.append((last + self._offset(start), new - old))
        return found

    def _offset(self, at: float) -> float:
        return (self.moment(at).utcoffset() or timedelta()).total_seconds()


def _joined(text: str) -> str:
    return _UNIT.sub("\u00a0", text)


def _date(moment: datetime, pattern: str, lang: str) -> str:
    from babel.dates import format_date  # the locale data is wanted only where a date is shown

    return format_date(moment.date(), pattern, locale=lang)
