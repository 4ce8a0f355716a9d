"""What `obs coverage` prints: whether the figures can be trusted, and every signal. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from obs.language import NONE_SHOWN, quantity_text
from obs.report import Report
from obs.text import Names, Quantity, say
from obs.titles import STATUSES
from obs.trust import Line, Trust


def to_text(found: Trust, report: Report) -> str:
    """The answer, the facts, the engines and the signals, for a terminal."""
    return "\n".join([*_facts(found, report), "", *_signals(found, report)]) + "\n"


def _facts(found: Trust, report: Report) -> Iterator[str]:
    yield report.text(found.said.says)
    yield from (f"  {report.text(each)}" for each in found.said.advice)
    yield ""
    told = [(report.text(title), report.text(says)) for title, says in found.facts]
    for figure in found.said.figures:
        value = quantity_text(Quantity(float("nan") if figure.value is None else figure.value, figure.unit), report.lang)
        told.append((report.text(figure.title), f"{value}; {report.text(figure.says)}" if figure.says else value))
    told += [(each.title, report.text(each.counted)) for each in found.engines]
    width = max(len(title) for title, _ in told)
    yield from (f"{title:<{width}}  {says}" for title, says in told)


def _signals(found: Trust, report: Report) -> Iterator[str]:
    titles = [report.text(line.reading.signal.title) for line in found.lines]
    width, state = max(map(len, titles)), max(len(report.text(status)) for status in STATUSES.values())
    for title, line in zip(titles, found.lines, strict=True):
        reading = line.reading
        told = reading.metric or report.text(reading.why) or NONE_SHOWN
        yield f"{title:<{width}}  {report.text(STATUSES[reading.status]):<{state}}  {told}"
        yield from (f"{'':<{width + state + 4}}{words}" for words in _more(line, report))


def _more(line: Line, report: Report) -> Iterator[str]:
    if line.reading.metric and line.reading.why:
        yield report.text(line.reading.why)
    if line.reading.metric and line.others:
        yield report.text(say("also looked for: {names}", names=Names(line.others)))
    for each in line.suffers:
        yield report.text(say("without it: {row}", row=each.says))
