"""Messages in the reader's language: gettext catalogues, figures by unit and locale, moments in the reader's zone.

The catalogues are `locale/<lang>/LC_MESSAGES/obs.po`, read at run time. A language is added by a catalogue of its own
(docs/contributing.md). Output is plain text: who puts it into HTML or Markdown escapes it there.
"""

from __future__ import annotations

import gettext
import math
import unicodedata
from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from importlib.resources import files
from io import BytesIO
from typing import TYPE_CHECKING

from obs.text import Message, Moment, Names, Quantity, Sentences, Value, say, say_n
from obs.window import zone_info

if TYPE_CHECKING:
    from babel.messages import Catalog

LANGUAGES = ("en", "es")
NONE_SHOWN = "–"  # no figure: never 0, never empty
_NAMES_SHOWN = 5  # of a longer list, then "and 47 more"
_NAME_LENGTH, _TEXT_LENGTH = 120, 500


def negotiate(lang: str, browser_locale: str | None = None) -> str:
    """The language to show: the one of the link, else the browser's, else English."""
    for wanted in (lang, browser_locale or ""):
        code = wanted.replace("_", "-").lower().split("-")[0]
        if code in LANGUAGES:
            return code
    return "en"


def render(message: Message | Sentences, lang: str = "en", zone: str = "UTC") -> str:
    """A message as text. A template that a catalogue lacks is shown in English rather than not at all."""
    if isinstance(message, Sentences):
        return " ".join(render(item, lang, zone) for item in message.items)
    known = _translations(lang)
    if message.plural is None:
        template = known.gettext(message.template)
    else:
        template = known.ngettext(message.template, message.plural, message.n)
    values = _days_once(message.values, zone)
    return template.format(**{name: _in_place(name, value, template, lang, zone) for name, value in values.items()})


def _in_place(name: str, value: Value, template: str, lang: str, zone: str) -> str:
    """What stands in a hole of this template: in Spanish a clock time that has its article keeps it, and its day comes after."""
    if isinstance(value, Moment) and value.dated and f"las {{{name}}}" in template:
        whole, time_of_day = clock(value.at, zone, True, lang), clock(value.at, zone, False, lang)
        return f"{time_of_day} del {whole.removesuffix(f' {time_of_day}')}" if whole != time_of_day else whole
    return value_text(value, lang, zone)


def _days_once(values: Mapping[str, Value], zone: str) -> Mapping[str, Value]:
    """What fills the holes, where a moment of the same day as the one before it goes without the day: `1 Nov 08:20:00 - 08:34:45`."""
    found: dict[str, Value] = {}
    before = None
    for name, value in values.items():
        if isinstance(value, Moment) and value.dated and math.isfinite(value.at):
            day = datetime.fromtimestamp(value.at, zone_info(zone)).date()
            found[name] = Moment(value.at, dated=day != before)
            before = day
        else:
            found[name] = value
    return found


def translate(text: str, lang: str) -> str:
    """A literal of the user interface in the reader's language."""
    return _translations(lang).gettext(text) if text else ""


def value_text(value: Value, lang: str = "en", zone: str = "UTC") -> str:
    """What stands in a hole."""
    if isinstance(value, Message | Sentences):
        return render(value, lang, zone)
    if isinstance(value, Quantity):
        return quantity_text(value, lang)
    if isinstance(value, Moment):
        return clock(value.at, zone, value.dated, lang)
    if isinstance(value, Names):
        return _names(value.items, lang)
    return _decimal(value, lang, 0) if isinstance(value, int) else _visible(value, _TEXT_LENGTH)


def clock(at: float, zone: str = "UTC", dated: bool = False, lang: str = "en") -> str:
    """The time of day in the zone, HH:MM:SS, after the day and month where `dated`, as the bar shows them: `1 Nov 08:20:00`."""
    if not math.isfinite(at):
        return NONE_SHOWN
    moment = datetime.fromtimestamp(at, zone_info(zone))
    time_of_day = moment.strftime("%H:%M:%S") + which(moment)
    if not dated:
        return time_of_day
    from babel.dates import format_date  # here, not above: `obs --help` need not wait for it

    return f"{format_date(moment.date(), 'd MMM', locale=lang)} {time_of_day}"


def which(moment: datetime) -> str:
    """The zone's name for the time, in the hour that the clock shows twice: ` PDT`, then ` PST`; else nothing."""
    twice = moment.replace(fold=0).utcoffset() != moment.replace(fold=1).utcoffset()
    return moment.strftime(" %Z") if twice else ""


def quantity_text(quantity: Quantity, lang: str = "en") -> str:
    """A figure as a person reads it: as many digits as mean something, the unit after a space."""
    value, unit = quantity.value, quantity.unit
    if math.isnan(value):
        return NONE_SHOWN
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if unit == "ratio":
        return f"{_percent(value * 100, lang)} %"
    if unit == "times":
        return f"{_figure(value, lang)} x"
    if unit == "seconds":
        return _duration(value, lang)
    if unit == "bytes":
        return _bytes(value, lang)
    if unit in ("decimal_bytes", "binary_bytes"):
        return _scaled_bytes(value, 1000 if unit == "decimal_bytes" else 1024, lang)
    if unit == "per_second":
        return f"{_figure(value, lang)} /s"
    if unit == "tokens_per_second":
        return render(say("{figure} tokens/s", figure=_figure(value, lang)), lang)
    if unit == "tokens":
        return render(Message("{figure} token", {"figure": _figure(value, lang)}, "{figure} tokens", 1 if value == 1 else 2), lang)
    if unit == "state" and value in (0, 1):
        return render(say("yes") if value else say("no"), lang)
    return _figure(value, lang)


def _percent(value: float, lang: str) -> str:
    """Two digits that mean something; what is nearly all or nearly nothing is not rounded to 100 or 0."""
    if 99 < value < 100 or -10 < value < 10:
        value = math.floor(value * 10) / 10 if 99 < value < 100 else value
        return _figure(value, lang) if abs(value) < 0.1 else _decimal(value, lang, 1)
    return _decimal(value, lang, 0)


def _duration(value: float, lang: str) -> str:
    size = abs(value)
    if 0 < size < 0.0995:
        return f"{_figure(value * 1000, lang) if size < 0.01 else _decimal(value * 1000, lang, 0)} ms"
    if size < 119.5:
        return f"{_decimal(value, lang, 2 if size < 0.995 else 1 if size < 29.95 else 0)} s"
    if size < 7170:
        return f"{_decimal(value / 60, lang, 0)} min"
    if size < 172_800:
        return f"{_decimal(value / 3600, lang, 1)} h"
    return f"{_decimal(value / 86_400, lang, 1)} d"


def _bytes(value: float, lang: str) -> str:
    for size, unit in ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if abs(value) >= size:
            return f"{_decimal(value / size, lang, 0 if abs(value) >= 100 * size else 1)} {unit}"
    return f"{_decimal(value, lang, 0)} B"


def _scaled_bytes(value: float, step: int, lang: str) -> str:
    """Three digits that mean something, in units of 1000 or of 1024: what is computed of memory is said in both."""
    units = ("B", "kB", "MB", "GB", "TB") if step == 1000 else ("B", "KiB", "MiB", "GiB", "TiB")
    power = 0
    while abs(value) >= 999.5 * step**power and power < len(units) - 1:
        power += 1
    size = value / step**power
    return f"{_decimal(size, lang, 0 if power == 0 or abs(size) >= 99.95 else 1 if abs(size) >= 9.995 else 2)} {units[power]}"


def _figure(value: float, lang: str) -> str:
    """Two to three digits that mean something."""
    size = abs(value)
    if size >= 100:
        return _decimal(value, lang, 0)
    if size >= 0.995:
        return _decimal(value, lang, 1)
    return _decimal(value, lang, 2 if size == 0 else min(12, 1 - math.floor(math.log10(size))))


def _decimal(value: float, lang: str, digits: int) -> str:
    """A number in the locale, at most `digits` behind the point, no trailing zeros."""
    from babel.numbers import format_decimal  # here, not above: `obs --help` need not wait for it

    rounded = round(value, digits) + 0.0  # + 0.0: never "-0"
    return format_decimal(rounded, format="#,##0." + "#" * digits if digits else "#,##0", locale=lang)


def _names(items: tuple[str, ...], lang: str) -> str:
    shown = ", ".join(_visible(item) for item in items[:_NAMES_SHOWN])
    more = len(items) - _NAMES_SHOWN
    if more <= 0:
        return shown or NONE_SHOWN
    return render(say_n("{names} and {n} more", "{names} and {n} more", more, names=shown), lang)


def _visible(text: str, length: int = _NAME_LENGTH) -> str:
    """Text from outside with what is invisible made visible (line breaks, terminal escapes, text direction), cut where it is endless."""
    hidden = ("Cc", "Cf", "Cs", "Zl", "Zp")
    shown = "".join(char.encode("unicode_escape").decode() if unicodedata.category(char) in hidden else char for char in text)
    return shown if len(shown) <= length else shown[: length - 1] + "…"


@lru_cache(maxsize=8)
def _translations(lang: str) -> gettext.NullTranslations:
    """The catalogue of a language, compiled in memory; for a language without one, the English templates themselves."""
    from babel.messages.mofile import write_mo  # here for the same reason

    if lang not in LANGUAGES:
        return gettext.NullTranslations()
    compiled = BytesIO()
    write_mo(compiled, catalogue(lang))
    compiled.seek(0)
    return gettext.GNUTranslations(compiled)


def catalogue(lang: str) -> Catalog:
    """The catalogue as Babel reads it."""
    from babel.messages.pofile import read_po  # here for the same reason

    with files("obs").joinpath(f"locale/{lang}/LC_MESSAGES/obs.po").open("rb") as file:
        return read_po(file, locale=lang, domain="obs")
