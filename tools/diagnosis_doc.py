"""Writes the tables of docs/diagnosis.md from the rules themselves (`make docs`): rows, needs, findings, thresholds, times.

tests/test_diagnosis_doc.py fails where the page says anything else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

from obs import baseline, conditions, coverage, edge, facts, findings, means, onset, oom, order
from obs.absence import REMEDY
from obs.conditions import Condition
from obs.config import Settings
from obs.language import render
from obs.signals import SIGNALS
from obs.symptoms import SYMPTOMS
from obs.text import Quantity, say
from obs.thresholds import THRESHOLDS

PAGE = Path(__file__).resolve().parent.parent / "docs" / "diagnosis.md"

# What a finding rests on, and what it does to the rows. A finding without its line here stops `make docs`.
FINDINGS = {
    "engine_stalled": ("work is held and no engine step is made for two minutes; where steps are not counted, five minutes without a token",
                       "the replica is not judged from the first silent scrape on"),
    "stale_gauges": ("KV use or running requests stand unchanged above zero during a stall", "they are no evidence"),
    "no_traffic": ("nothing runs, waits, begins or finishes anywhere for five minutes", "none: silence is no trouble"),
    "restarted": ("counters begin again, the container restarts, or the series come back after two minutes",
                  "the replica is not judged during its warm-up"),
    "host_oom": ("the container's last end was OOMKilled, or its memory stands at the limit when it dies",
                 "speaks against a GPU out-of-memory error: it is RAM"),
    "replica_imbalance": ("a replica in trouble stands far above the median of the others in KV use, for five minutes",
                          "none: rows are judged by replica"),
    "series_vanished": ("a series ends while its replica still works", "what needs it is unknown, not clear"),
    "scrape_failing": ("scrapes fail for a minute, or one in ten over ten minutes", "nothing is known of the replica meanwhile"),
    "abandoned_work": ("half of the tokens reach nobody, more than usual, while callers are seen to leave",
                       "explains row 4 where requests are retried"),
}  # fmt: skip

# Figures of time and number that shape all rules alike, and what each is for.
SHAPE: tuple[tuple[ModuleType, str, str], ...] = (
    (baseline, "BLOCK_SECONDS", "a block of the baseline: its median is one figure"),
    (baseline, "MEMORY_SECONDS", "how far the baseline remembers"),
    (baseline, "LEAST_BLOCKS", "quiet blocks without which there is no baseline"),
    (means, "LEAST_OBSERVATIONS", "requests in a mean, at least: of fewer, it is chance"),
    (conditions, "GAP_SECONDS", "a dip or a hole in the data this short ends nothing"),
    (conditions, "RELEASE", "a condition with a baseline ends this far back to it"),
    (conditions, "RELEASE_OF_FLOOR", "one without ends under this part of its limit: KV use flaps between 0.85 and 1 while preempting"),
    (onset, "NEAR_SECONDS", "what belongs together may be seen this far apart: histograms are observed at the finish"),
    (onset, "BELONGS_SECONDS", "what began this long before the rest is a state of its own, not the onset"),
    (onset, "RAMP_SECONDS", "how far an onset is walked back down its ramp"),
    (onset, "FOOT", "the part of the way to the limit under which nothing has begun"),
    (edge, "TIMEOUT_SECONDS", "time-outs are rare: counted over this long"),
    (edge, "LEAST_RETRIES", "retries in five minutes, at least: fewer are chance"),
    (facts, "STALL_WITHOUT_STEPS_SECONDS", "how long silence must last where engine steps are not counted"),
    (facts, "STALL_BY_ANSWERS_SECONDS", "how long silence must last where tokens are not counted either, and answers are"),
    (findings, "NO_TRAFFIC_SECONDS", "silence of this length is no traffic"),
    (findings, "WASTE_HOLD_SECONDS", "how long tokens must be wasted"),
    (oom, "AROUND_SECONDS", "what led to an out-of-memory event, and what it did, is looked for this far around it"),
    (oom, "LASTS_SECONDS", "an out-of-memory event is over this long after it, if the replica works"),
    (order, "LEAD_SECONDS", "pressure that began this long before the retries is their cause"),
    (order, "APART_SECONDS", "what begins this long after all else has ended is another incident"),
    (coverage, "BLIND_RATIO", "a row is not clear where more of the window than this was not seen,"),
    (coverage, "BLIND_SECONDS", "nor clear now where this much at its end was not"),
)  # fmt: skip


def _figure(name: str) -> str:
    threshold = THRESHOLDS[name]
    return render(say("{figure}", figure=Quantity(threshold.value, threshold.unit)))


def limit_words(condition: Condition) -> str:
    """A limit as a phrase in the condition's own sentence: the floor where there is one, else what is usual here."""
    limit = condition.limit
    if limit.floor and not condition.stays:
        return _figure(limit.floor)
    words = f"{THRESHOLDS[limit.ratio].value:g} times the usual" if limit.ratio else ""
    return f"{words} and {_figure(limit.rise)} more than it" if limit.rise else words


def condition_words(condition: Condition) -> str:
    """A condition in words, with its limit."""
    return condition.words.template.replace("{limit}", limit_words(condition))


def conditions_table() -> str:
    """How the limit of each condition is made: the largest of floor, multiple and rise; or the absolute one, without a baseline."""
    lines = ["| condition | floor | times the usual | over the usual | without a baseline |", "|---|---|---|---|---|"]
    every = {c.id: c for row in SYMPTOMS for c in (*row.symptom, *row.explained_by, *row.against)}
    for condition in every.values():
        limit = condition.limit
        absolute = limit.absolute or limit.floor
        grows = " + `prefill_speed`" if limit.by_prompt else ""
        without = (
            (f"`{absolute}`{grows}" if absolute else "never on") if limit.ratio or limit.rise else "the floor" if limit.floor else "any"
        )
        cells = [f"`{name}`" if name else "" for name in (limit.floor, limit.ratio, limit.rise)]
        lines.append(f"| {render(condition.title)} | {' | '.join(cells)} | {without} |")
    return "\n".join(lines)


def _list(conditions: Iterable[Condition], joined: str) -> str:
    return f"<br>*{joined}* ".join(condition_words(condition) for condition in conditions)


def rows_table() -> str:
    """The four rows with their conditions."""
    lines = ["| row | must be seen | is explained by | speaks against it |", "|---|---|---|---|"]
    stage = f"a stage that takes {_figure('stage_share')} of the rise: queue, tokenization, prefill or network"
    for row in SYMPTOMS:
        seen = _list(row.symptom, "and" if row.every else "or")
        explained = _list(row.explained_by, "or") or stage
        lines.append(f"| {render(row.title)}<br>`{row.id}` | {seen} | {explained} | {_list(row.against, 'or')} |")
    return "\n".join(lines)


def needs_table() -> str:
    """What must be measured for a row to be clear, and what would give it."""
    lines = ["| row | signal | without it | what gives it |", "|---|---|---|---|"]
    for row in SYMPTOMS:
        for group in coverage.NEEDS[row.id]:
            titles = " or ".join(render(SIGNALS[s].title) for s in group)
            lines.append(f"| {render(row.title)} | {titles} | the row is unknown | {_remedy(group[0])} |")
        for signal in coverage.HELPS[row.id]:
            lines.append(f"| {render(row.title)} | {render(SIGNALS[signal].title)} | the row may stay suspected | {_remedy(signal)} |")
    return "\n".join(lines)


def _remedy(signal: str) -> str:
    return render(REMEDY[signal]) if signal in REMEDY else "The engine's own metrics."


def findings_table() -> str:
    """The findings with what they rest on."""
    lines = ["| finding | when | what it does to the rows |", "|---|---|---|"]
    lines += [f"| {render(title)}<br>`{id}` | {FINDINGS[id][0]} | {FINDINGS[id][1]} |" for id, title in findings.TITLES.items()]
    return "\n".join(lines)


def thresholds_table() -> str:
    """Every threshold with its setting, source and reason."""
    prefix = str(Settings.model_config.get("env_prefix", ""))
    lines = ["| setting | value | source | reason |", "|---|---|---|---|"]
    for name, threshold in THRESHOLDS.items():
        lines.append(f"| `{prefix}THRESHOLDS__{name.upper()}` | {_figure(name)} | {threshold.source} | {render(threshold.reason)} |")
    return "\n".join(lines)


def shape_table() -> str:
    """The figures that are no thresholds."""
    lines = ["| figure | value | what for |", "|---|---|---|"]
    for module, name, words in SHAPE:
        value = getattr(module, name)
        shown = render(say("{figure}", figure=Quantity(value, "seconds"))) if name.endswith("SECONDS") else f"{value:g}"
        lines.append(f"| `{module.__name__.split('.')[-1]}.{name}` | {shown} | {words} |")
    return "\n".join(lines)


END = "<!-- end -->"
TABLES = {
    "rows": rows_table,
    "conditions": conditions_table,
    "needs": needs_table,
    "findings": findings_table,
    "thresholds": thresholds_table,
    "shape": shape_table,
}  # by marker


def written(text: str) -> str:
    """The page's text with all tables made anew."""
    for name, table in TABLES.items():
        begin, rest = re.split(rf"(?<=<!-- {name}: made by `make docs` -->\n)", text, maxsplit=1)
        text = f"{begin}{table()}\n{rest[rest.index(END) :]}"
    return text


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text("utf-8")), "utf-8")
