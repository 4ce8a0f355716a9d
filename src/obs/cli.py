"""The command line: `obs diagnose`, `obs report`, `obs bundle`, `obs coverage` (docs/command-line.md). The same code path as the dashboard.

Exit 0: done, whatever the verdict; 2: the call is wrong; 3: the source could not be reached or refused. What is asked for goes to
standard output and nothing else does; what went wrong is one sentence on standard error. Imports wait until a command runs, so that
`obs --help` is quick.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from obs import __version__
from obs.errors import CallError, ObsError
from obs.text import Names, say

if TYPE_CHECKING:
    from obs.config import Settings
    from obs.links import View
    from obs.source import Source

EXIT_CALL, EXIT_SOURCE = 2, 3


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code."""
    args = _parser().parse_args(argv)
    try:
        out: str = args.run(args)
        sys.stdout.write(out)
        sys.stdout.flush()
    except BrokenPipeError:  # `obs diagnose | head`: the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except ObsError as error:
        from obs.language import negotiate, render

        sys.stderr.write(f"obs: {render(error.says, negotiate(args.lang or ''))}\n")
        return EXIT_CALL if isinstance(error, CallError) else EXIT_SOURCE
    except KeyboardInterrupt:
        return 130
    return 0


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, and where to read on."""

    def error(self, message: str) -> NoReturn:
        self.exit(EXIT_CALL, f"{self.prog}: {message}. See {self.prog} --help.\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="obs", description="Which row of the LLM-serving symptom table applies, since when, on which replicas, how sure.")
    parser.add_argument("--version", action="version", version=f"obs {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True, parser_class=_Parser)

    diagnose = commands.add_parser("diagnose", help="the diagnosis of a window", parents=[_view_options()])
    diagnose.add_argument("--format", choices=("text", "json", "markdown"), default="text", help="how to print it (default: text)")
    diagnose.set_defaults(run=_diagnose)

    bundle = commands.add_parser("bundle", help="keep the readings of a window in one file", parents=[_view_options(bundle=False)])
    bundle.add_argument("--output", metavar="FILE", type=Path, required=True, help="the file to write")
    bundle.add_argument("--force", action="store_true", help="write over a file that is there")
    bundle.add_argument("--pseudonymise", action="store_true", help="put other names for replicas, namespaces, models and hosts")
    bundle.set_defaults(run=_bundle, bundle=None)

    report = commands.add_parser("report", help="the report of a window for a retrospective, in one file", parents=[_view_options()])
    report.add_argument("--output", metavar="FILE", type=Path, required=True, help="the file to write: .html or .md")
    report.add_argument("--force", action="store_true", help="write over a file that is there")
    report.set_defaults(run=_report)

    coverage = commands.add_parser("coverage", help="whether the figures can be trusted, and every signal", parents=[_view_options()])
    coverage.add_argument("--format", choices=("text", "json"), default="text", help="how to print it (default: text)")
    coverage.set_defaults(run=_coverage)
    return parser


def _view_options(*, bundle: bool = True) -> _Parser:
    """What every command takes: a source, a window, a scope, a reader."""
    options = _Parser(add_help=False)
    source = options.add_mutually_exclusive_group()
    source.add_argument("--prometheus-url", metavar="URL", help="Prometheus-compatible API (default: OBS_PROMETHEUS_URL)")
    source.add_argument("--source", metavar="NAME", help="one of the sources in the settings file")
    if bundle:
        source.add_argument(
            "--bundle", metavar="FILE", help="a bundle instead of a Prometheus; `sample`: the recording that ships with obs"
        )
    options.add_argument(
        "--from", dest="start", metavar="T", help="start: RFC 3339, Unix seconds or ms, now-1h (default: an hour before the end)"
    )
    options.add_argument("--to", dest="end", metavar="T", help="end (default: now; on a bundle, its end)")
    options.add_argument(
        "--scope", metavar="LABEL=VALUE", action="append", default=[], help="only these series; repeated: any of the values"
    )
    options.add_argument("--tz", metavar="ZONE", help="zone of times without an offset, and of the times that are shown (default: UTC)")
    options.add_argument("--lang", choices=("en", "es"), help="language of the sentences (default: en)")
    options.add_argument("--config", metavar="FILE", help="settings file (default: OBS_CONFIG)")
    options.add_argument("--now", type=float, help=argparse.SUPPRESS)  # Unix seconds, for tests
    return options


def _diagnose(args: argparse.Namespace) -> str:
    from obs import report, report_json
    from obs.api import report as collected

    source, view, settings, now = _asked(args)
    found = collected(source, view, settings, now)
    if args.format == "json":
        return _json(report_json.to_json(found))
    return report.to_markdown(found) if args.format == "markdown" else report.to_text(found)


def _coverage(args: argparse.Namespace) -> str:
    from obs import api, report_json, trust_text

    source, view, settings, now = _asked(args)
    found = api.report(source, view, settings, now)
    if args.format == "json":
        return _json(report_json.signals_json(found.readings, found.lang))
    inspection = api.inspected(source, found.readings)
    return trust_text.to_text(api.trusted(found.readings, found.diagnosis, found.about, inspection), found)


def _bundle(args: argparse.Namespace) -> str:
    from obs import api
    from obs.bundle import SUFFIX

    _free(args, f"incident{SUFFIX}")
    source, view, settings, now = _asked(args)
    window = api.window(source, view, now)
    return _written(args, lambda file: file.write_bytes(api.packed(source, window, view.scope, settings, pseudonymise=args.pseudonymise)))


def _report(args: argparse.Namespace) -> str:
    from obs import api, retrospective

    _free(args, "report.html")
    if args.output.suffix not in retrospective.FORMATS:
        raise CallError(say("{file} is neither .html nor .md; the ending says what is written.", file=Names((str(args.output),))))
    source, view, settings, now = _asked(args)
    found = api.report(source, view, settings, now)
    found = replace(found, happened=api.happened(source, found))
    content = retrospective.to_html(found) if args.output.suffix == ".html" else retrospective.to_markdown(found)
    return _written(args, lambda file: file.write_text(content, "utf-8"))


def _free(args: argparse.Namespace, example: str) -> None:
    """Whether the output file can be written, before anything is read for it; one that is there only with --force."""
    name = Names((str(args.output),))
    if args.output.is_dir():
        within = Names((str(args.output / example),))
        raise CallError(say("{file} is a folder. Give the name of a file in it, for example {example}.", file=name, example=within))
    if not args.output.parent.is_dir():
        folder = Names((str(args.output.parent),))
        raise CallError(say("There is no folder {folder} to write into. Make it, or give a file elsewhere.", folder=folder))
    if args.output.exists() and not args.force:
        raise CallError(say("{file} is there already; give another name, or --force.", file=name))


def _written(args: argparse.Namespace, write: Callable[[Path], object]) -> str:
    """Writes the output file."""
    from obs.language import render

    name = Names((str(args.output),))
    try:
        write(args.output)
    except OSError as error:
        raise CallError(say("{file} could not be written: {reason}.", file=name, reason=str(error.strerror))) from error
    return render(say("Wrote {file}.", file=name), args.lang or "en") + "\n"


def _asked(args: argparse.Namespace) -> tuple[Source, View, Settings, float]:
    """The source, the view, the settings and the moment that the arguments mean."""
    from obs import api, config
    from obs import bundle as bundles
    from obs.prometheus import Prometheus

    if args.config:
        os.environ["OBS_CONFIG"] = args.config
    view = api.strict(_params(args))
    settings = config.load(prometheus_url=args.prometheus_url)
    now = args.now if args.now is not None else time.time()
    if args.bundle:
        return (bundles.sample() if args.bundle == "sample" else bundles.Bundle(Path(args.bundle))), view, settings, now
    configured = settings.source(args.source)
    if configured is None:
        raise CallError(
            say("There is no source: give --prometheus-url, set OBS_PROMETHEUS_URL, or try --bundle sample, the recording in obs.")
        )
    return Prometheus(configured), view, settings, now


def _params(args: argparse.Namespace) -> dict[str, list[str]]:
    """The arguments as a link's parameters, so that both mean the same."""
    from obs.links import RESERVED

    given = {"from": args.start, "to": args.end, "tz": args.tz, "lang": args.lang}
    params = {name: [value] for name, value in given.items() if value is not None}
    for pair in args.scope:
        label, equals, value = pair.partition("=")
        if not (label and equals and value) or label in RESERVED:
            raise CallError(say("--scope {pair} is no label=value, or the label is a reserved word.", pair=Names((pair,))))
        params.setdefault(label, []).append(value)
    for option, value in (("--from", args.start), ("--to", args.end)):
        if value == "":
            raise CallError(say("{option} is empty; give a time, or leave it out.", option=option))
    return params


def _json(content: object) -> str:
    return json.dumps(content, ensure_ascii=False, allow_nan=False, indent=2) + "\n"


if __name__ == "__main__":
    sys.exit(main())
