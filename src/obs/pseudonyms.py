"""A bundle to be handed on: names of replicas, namespaces, models, hosts and the like become `replica-01`, `namespace-1`, ...

The same name becomes the same pseudonym everywhere in the file, so the readings hang together as before and the verdicts are the same.
Numbers, ports, versions and what the systems themselves expose (`le`, `reason`, ...) stay: they name nobody. The order of names stays too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files

from obs import bundle_file
from obs.vocabulary import vocabularies

_KINDS: Mapping[str, str] = {
    **dict.fromkeys(
        ("pod", "exported_pod", "kubernetes_pod_name", "instance", "exported_instance", "replica", "Hostname", "node"), "replica"
    ),
    **dict.fromkeys(("namespace", "exported_namespace", "kubernetes_namespace"), "namespace"),
    **dict.fromkeys(("model_name", "model", "service", "served_model_name"), "model"),
}
_KEPT = frozenset(  # labels whose values are the systems' own
    [
        *("le", "engine", "reason", "finished_reason", "code", "response_code", "status", "type", "phase"),
        *("dtype", "cache_dtype", "kv_cache_dtype", "gpu", "device", "severity"),
    ]
)
_PLAIN = re.compile(r"[+-]?(\d+(\.\d*)?([eE][+-]?\d+)?|inf)|true|false|none|auto|", re.IGNORECASE)
_TAIL = re.compile(r"(.+?)(:v?\d[\w.-]*)")  # a port, or a version
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')


def pseudonymised(data: bytes, name: str = "bundle") -> bytes:
    """The bundle with pseudonyms for names. Raises CallError where it is no whole bundle."""
    manifest, series = bundle_file.load(data, name)
    said = [pair for labels, _ in series for row in labels for pair in row.items()]
    said += [(label, value) for label, values in manifest.scope.items() for value in values]
    beside = manifest.beside
    said += [pair for of in ((beside.infos, beside.alerts) if beside else ()) for one in of for pair in one.labels.items()]
    names = _assigned(said)

    def of(label: str, value: str) -> str:
        head, tail = _parts(label, value)
        return f"{names[head]}{tail}" if head else value

    def renamed(shown: tuple[bundle_file.ShownSeries, ...]) -> tuple[bundle_file.ShownSeries, ...]:
        return tuple(one.model_copy(update={"labels": {label: of(label, value) for label, value in one.labels.items()}}) for one in shown)

    made = manifest.model_copy(
        update={
            "scope": {label: tuple(of(label, value) for value in values) for label, values in manifest.scope.items()},
            "source": manifest.source.model_copy(update={"name": "source"}),
            "queries": tuple(q.model_copy(update={"promql": _told(q.promql, names)}) for q in manifest.queries),
            "beside": beside and beside.model_copy(update={kind: renamed(getattr(beside, kind)) for kind in ("infos", "alerts")}),
            "pseudonyms": True,
        }
    )
    rows = [(tuple({label: of(label, value) for label, value in row.items()} for row in labels), values) for labels, values in series]
    return bundle_file.dump(made, rows)


def _parts(label: str, value: str) -> tuple[str, str]:
    """The part of a value that names somebody ("" for none), and what stays after it."""
    if label in _KEPT or _PLAIN.fullmatch(value):
        return "", value
    found = _TAIL.fullmatch(value)
    return (found[1], found[2]) if found else (value, "")


def _assigned(said: list[tuple[str, str]]) -> Mapping[str, str]:
    """A pseudonym for each name: of what the first of its labels tells, in the order of the names."""
    kinds: dict[str, str] = {}
    for label, value in sorted(set(said), key=lambda pair: (list(_KINDS).index(pair[0]) if pair[0] in _KINDS else len(_KINDS), pair)):
        head, _ = _parts(label, value)
        if head:
            kinds.setdefault(head, _KINDS.get(label) or _system(value) or label)
    names: dict[str, str] = {}
    for kind in sorted(set(kinds.values())):
        own = sorted(head for head, of in kinds.items() if of == kind)
        names |= {head: f"{kind}-{number:0{len(str(len(own)))}}" for number, head in enumerate(own, start=1)}
    return names


def _system(value: str) -> str:
    """The system that a name is made with: a job called `acme-vllm` stays one of vLLM's."""
    return next((v.id for v in vocabularies() if v.id in value.lower()), "")


def _told(promql: str, names: Mapping[str, str]) -> str:
    """The query with pseudonyms; what stands in quotes and is neither a known name nor the vocabularies' own is hidden."""

    def quoted(match: re.Match[str]) -> str:
        text = match[1]
        if text in _vocabulary_words() or _PLAIN.fullmatch(text):
            return match[0]
        plain = re.sub(r"\\(.)", r"\1", text.replace("\\\\", "\\"))
        return '"' + "|".join(names.get(part) or _with_tail(part, names) for part in plain.split("|")) + '"'

    return _QUOTED.sub(quoted, promql)


def _with_tail(part: str, names: Mapping[str, str]) -> str:
    found = _TAIL.fullmatch(part)
    return f"{names[found[1]]}{found[2]}" if found and found[1] in names else "hidden"


@cache
def _vocabulary_words() -> frozenset[str]:
    """What stands in quotes in the vocabularies: it is of the systems, and names nobody's."""
    return frozenset(word for text in _texts() for word in re.findall(r"[\"']([^\"'\n]*)[\"']", text))


def _texts() -> Iterator[str]:
    for folder in ("engines", "gateways", "hardware"):
        for entry in files("obs").joinpath(folder).iterdir():
            if entry.name.endswith(".toml"):
                yield entry.read_text("utf-8")
