"""One diagnosis from parameters: what `obs diagnose --format json` prints and `GET /api/v1/diagnosis` answers, from the same code."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from obs import __version__, again, bundle, bundle_file, links, pseudonyms, shelf
from obs.collect import FINE_SECONDS
from obs.config import Settings
from obs.errors import CallError, SourceError
from obs.facts import Facts
from obs.history import history
from obs.language import negotiate, render
from obs.links import View
from obs.prometheus import Prometheus
from obs.report import Report
from obs.report_json import to_json
from obs.scan import scan
from obs.seen import History
from obs.signals import Readings
from obs.source import About, Inspectable, Inspection, Source
from obs.standing import Tails
from obs.tails import tails
from obs.text import Message, say
from obs.timeline import Timeline, timeline
from obs.trust import Trust, trust
from obs.verdict import Diagnosis
from obs.vocabulary import vocabularies
from obs.window import Window

# What the page does without, and says so; here nothing was done, and the same holes are filled.
_REFUSED: Mapping[str, Message] = {
    "{name} was ignored: {reason}": say("{name} was refused: {reason}"),
    "{name} was ignored: it belongs to Grafana and means nothing here.": say(
        "{name} was refused: it belongs to Grafana and means nothing here."
    ),
    "{name} was ignored: it cannot be the name of a label.": say("{name} was refused: it cannot be the name of a label."),
    "The comparison was left out: it needs both compare_from and compare_to.": say("A comparison needs both compare_from and compare_to."),
    "The link names both a source and a recording; the recording is shown.": say("Name a source or a recording, not both."),
}


def diagnosis_response(
    params: Mapping[str, Sequence[str]], settings: Settings, now: float, opened: Callable[[View], Source] | None = None
) -> tuple[int, dict[str, Any]]:
    """(HTTP status, JSON object) for the parameters of a link: 200, 400 for a wrong call, 502 for a source that fails. `opened` gives
    the source of a view, where it is one that others use too.

    Unlike the page, which falls back to a default and says so, a program that sends what does not parse is told so.
    """
    lang = negotiate((params.get("lang") or [""])[-1])
    try:
        view = strict(params)
        source = opened(view) if opened else open_source(view, settings)
        return 200, to_json(report(source, view, settings, now))
    except CallError as error:
        return 400, {"error": render(error.says, lang)}
    except SourceError as error:
        return 502, {"error": render(error.says, lang)}


def strict(params: Mapping[str, Sequence[str]]) -> View:
    """The view of the parameters; a CallError for the first that does not parse."""
    view, notes = links.parse("", params)
    if notes:
        refused = _REFUSED.get(notes[0].template)
        raise CallError(replace(refused, values=notes[0].values) if refused else notes[0])
    return view


def open_source(view: View, settings: Settings) -> Source:
    """The source that the view names: a known bundle, a configured source, the default one, else the sample recording."""
    if view.bundle:
        return shelf.named(view.bundle, settings.bundle_dir, settings.notes_dir)
    configured = settings.source(view.source)
    return Prometheus(configured) if configured else bundle.sample()


def report(source: Source, view: View, settings: Settings, now: float) -> Report:
    """Collects, diagnoses, and holds what a report is made of. Times without an offset are UTC where the view has no zone."""
    readings, found = scan(source, window(source, view, now), view.scope, settings)
    readings = recalled(source, readings, found, view.scope)
    made_for = source.manifest.scope if isinstance(source, bundle.Bundle) else {}  # a bundle holds no more than it was made for
    return Report(found, readings, source.about(), {**made_for, **view.scope}, negotiate(view.lang), view.zone or "UTC")


def happened(source: Source, found: Report) -> Timeline:
    """The changes and alerts of a report's window. A source that no longer answers is a reason why they are not known, no error."""
    try:
        seen = history(source, found.readings, found.scope)
    except SourceError as error:
        seen = History((), (), error.says, error.says)
    return timeline(Facts(found.readings, dict(found.diagnosis.thresholds)), found.diagnosis, seen)


def packed(source: Source, wanted: Window, scope: Mapping[str, Sequence[str]], settings: Settings, *, pseudonymise: bool = False) -> bytes:
    """The bundle of a window, with the verdict that its readings give and the thresholds in force. Raises CallError and SourceError."""
    data = bundle.pack(source, wanted, scope, settings)
    held = bundle.Bundle(data)
    _readings, found = scan(held, held.window, held.manifest.scope, settings)
    judged = bundle_file.Judged(primary=found.primary, states={verdict.row: verdict.state.value for verdict in found.verdicts})
    thresholds = {threshold.id: threshold.value for threshold in found.thresholds.values()}
    data = bundle_file.described(data, held.manifest.model_copy(update={"judged": judged, "thresholds": thresholds}))
    return pseudonyms.pseudonymised(data) if pseudonymise else data


def recalled(source: Source, readings: Readings, found: Diagnosis, scope: Mapping[str, tuple[str, ...]]) -> Readings:
    """The readings, with a note where they are all of a bundle and are judged otherwise than when it was made."""
    if not isinstance(source, bundle.Bundle) or source.manifest.judged is None:
        return readings
    made = source.manifest
    if (made.start, made.end) != (readings.start, readings.end) or (scope and dict(scope) != made.scope) or made.judged is None:
        return readings
    told = again.changed(made.judged.states, made.thresholds, made.made_by, f"obs {__version__}", found)
    return replace(readings, notes=(*readings.notes, *told.items)) if told else readings


def inspected(source: Source, readings: Readings) -> Inspection:
    """What the source's adapter tells beside the readings: of a server two requests at most, and one where the window is long. It says
    itself then how far back it can be read, and its pages have few requests to spare. Raises SourceError."""
    names = (readings.signals[signal].metric for signal in ("requests_running", "kv_use", "generation_tokens", "up"))
    metric = next((name.partition(" / ")[0] for name in names if name), None)
    if not isinstance(source, Inspectable):
        return Inspection()
    found = source.inspect(None if readings.end - readings.start > FINE_SECONDS else metric, readings.end)
    return found if found.oldest or found.retention else source.inspect(metric, readings.end)


def tailed(source: Source, readings: Readings, scope: Mapping[str, tuple[str, ...]], end: float) -> tuple[Tails, Message | None]:
    """Each replica's first tokens over the window up to `end`, and the reason where they are not read. One request. Raises SourceError."""
    try:
        return tails(source, readings, scope, end), None
    except CallError as error:
        return {}, error.says


def trusted(readings: Readings, diagnosis: Diagnosis, about: About, inspection: Inspection) -> Trust:
    """Whether a page that shows this can be trusted."""
    return trust(readings, diagnosis, about, inspection, {v.id: v.title for v in vocabularies()})


def window(source: Source, view: View, now: float) -> Window:
    """The window that a view means on this source. A server is not asked: a wrong window is said without reaching it."""
    return links.resolve(view, now, source.about() if isinstance(source, bundle.Bundle) else None)
