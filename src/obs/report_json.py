"""A diagnosis for programs: the JSON of `obs diagnose` and `GET /api/v1/diagnosis`, described in docs/command-line.md. Pure."""

from __future__ import annotations

import math
from typing import Any

from obs.language import render
from obs.report import Report, changes
from obs.signals import Readings
from obs.titles import ROWS
from obs.trust import suffers
from obs.verdict import Evidence, Verdict
from obs.window import rfc3339

SCHEMA = 1  # fields are added, never renamed, while it is 1


def to_json(report: Report) -> dict[str, Any]:
    """The object of the command line and of `GET /api/v1/diagnosis`. No NaN or Infinity: None. Fields are added, never renamed."""
    diagnosis, about = report.diagnosis, report.about
    return {
        "schema": SCHEMA,
        "window": {"from": rfc3339(diagnosis.start), "to": rfc3339(diagnosis.end), "step_seconds": _finite(diagnosis.step_seconds)},
        "scope": {label: list(values) for label, values in report.scope.items()},
        "source": {"name": about.name, "flavor": about.flavor, "version": about.version},
        "primary": diagnosis.primary,
        "now": diagnosis.now,
        "headline": report.text(diagnosis.headline),
        "summary": report.text(diagnosis.summary),
        "rows": [_row(verdict, report) for verdict in diagnosis.verdicts],
        "findings": [
            {"id": f.id, **_span(f.start, f.end), "replicas": list(f.replicas), "title": report.text(f.title), "says": report.text(f.says)}
            for f in diagnosis.findings
        ],
        "signals": signals_json(report.readings, report.lang),
        "thresholds": {
            t.id: {"value": _finite(t.value), "unit": t.unit, "source": t.source, "reason": report.text(t.reason)}
            for t in diagnosis.thresholds.values()
        },
        "replicas": list(diagnosis.replicas),
        "notes": [report.text(note) for note in report.readings.notes],
    }


def signals_json(readings: Readings, lang: str = "en") -> dict[str, Any]:
    """Every signal: whether it was measured, under which name, and otherwise why not, and which rows suffer."""
    return {
        name: {
            "status": reading.status.value,
            "metric": reading.metric,
            "looked_for": list(reading.looked_for),
            "why": render(reading.why, lang) if reading.why else None,
            "promql": reading.promql,
            "unit": reading.signal.unit,
            "rows": [{"row": each.row, "without": "unknown" if each.needed else "unexplained"} for each in suffers(readings, reading)],
        }
        for name, reading in readings.signals.items()
    }


def _row(verdict: Verdict, report: Report) -> dict[str, Any]:
    return {
        "id": verdict.row,
        "title": report.text(ROWS[verdict.row]),
        "state": verdict.state.value,
        "state_now": verdict.state_now.value,
        "confidence": _finite(verdict.confidence),
        "stage": verdict.stage,
        "reason": report.text(verdict.reason) or None,
        "follows_from": verdict.follows_from,
        "episodes": [{**_span(e.start, e.end), "replicas": list(e.replicas)} for e in verdict.episodes],
        "evidence": [_evidence_json(e, report) for e in verdict.evidence],
        "missing": [report.text(m) for m in verdict.missing],
        "changes_to_test": changes(verdict, report),
    }


def _evidence_json(e: Evidence, report: Report) -> dict[str, Any]:
    return {
        "signal": e.signal,
        "stance": e.stance.value,
        "value": _finite(e.value),
        "unit": e.unit,
        "baseline": _finite(e.baseline),
        "threshold": _finite(e.threshold),
        "onset": rfc3339(e.onset) if e.onset is not None else None,
        "replicas": list(e.replicas),
        "metric": e.metric,
        "promql": e.promql,
        "title": report.text(e.title),
        "says": report.text(e.says),
    }


def _span(start: float, end: float | None) -> dict[str, str | None]:
    return {"from": rfc3339(start), "to": rfc3339(end) if end is not None else None}


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
