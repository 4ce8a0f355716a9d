"""Sources that cannot be run here, before a real Prometheus 2: each changes what its documented API does otherwise, nothing else."""

from __future__ import annotations

import json
import re
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

BUILD = "/api/v1/status/buildinfo"
REAL = {"version": "2.42.0", "revision": "x", "goVersion": "go1.19"}


class Plain:
    """Passes everything on. What a stand-in does otherwise, it overrides."""

    prefix = ""
    build: dict[str, str] = REAL

    def refuses(self, _headers: dict[str, str], _query: str) -> tuple[int, str] | None:
        """A status and an error in place of an answer."""
        return None

    def asked(self, query: str) -> str:
        """The PromQL as the real one understands it."""
        return query

    def answered(self, body: dict) -> dict:
        """The answer as this source gives it."""
        return body


class Prometheus3(Plain):
    """UTF-8 names (no translation of OTLP's): they stand in quotes inside the braces, labels in quotes too, and nothing else parses."""

    build = {**REAL, "version": "3.5.0"}  # noqa: RUF012
    dotted = ("gen_ai.server.request.duration", "gen_ai.server.time_to_first_token", "gen_ai.request.model", "error.type")

    def refuses(self, _headers, query):
        bare = re.sub(r'"[^"]*"', "", query)
        return (400, "parse error: unexpected character: '.'") if re.search(r"[a-z]\.[a-z]", bare) else None

    def asked(self, query):
        """A label without its dots is another one, which nothing has."""
        labels = "|".join(name.replace(".", "_") for name in self.dotted[2:])
        query = re.sub(rf'(?<!["\w])({labels})(?!["\w])', r"\1_", query)
        metric = r'\{"([a-z_.]+?)(_sum|_count|_bucket)", ?'
        query = re.sub(metric, lambda m: f"{m[1].replace('.', '_')}_seconds{m[2]}{{", query)
        return re.sub(r'"([a-z_]+(?:\.[a-z_]+)+)"(?=\s*[,)=!])', lambda m: m[1].replace(".", "_"), query)

    def answered(self, body):
        back = {name.replace(".", "_"): name for name in self.dotted}

        def name(text):
            base, part = re.fullmatch(r"(.*?)(_sum|_count|_bucket)?", text).groups()
            return back.get(base.removesuffix("_seconds"), base) + (part or "")

        data = body["data"]
        if isinstance(data, list):
            return {**body, "data": [name(entry) for entry in data]}
        for row in data["result"]:
            row["metric"] = {name(label): value for label, value in row["metric"].items()}
        return body


class Thanos(Plain):
    """A querier of which one store is away: it answers, and warns."""

    build = {**REAL, "version": "0.37.2"}  # noqa: RUF012

    def answered(self, body):
        return {**body, "warnings": ["No StoreAPIs matched for this query: 10.0.0.7:10901"]}


class Mimir(Plain):
    """Every path under /prometheus, every request a tenant's."""

    prefix = "/prometheus"
    build = {**REAL, "version": "2.14.0", "application": "Grafana Mimir"}  # noqa: RUF012

    def refuses(self, headers, _query):
        return None if headers.get("X-Scope-OrgID") == "team-a" else (401, "no org id")


@contextmanager
def before(real: str, how: Plain) -> Iterator[str]:
    """A server that answers as `how` does from what `real` answers; its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.reply(urllib.parse.urlsplit(self.path).query)

        def do_POST(self):
            self.reply(self.rfile.read(int(self.headers["Content-Length"])).decode())

        def reply(self, text: str) -> None:
            path = urllib.parse.urlsplit(self.path).path
            fields = dict(urllib.parse.parse_qsl(text))
            refused = how.refuses(dict(self.headers), fields.get("query", ""))
            if not path.startswith(f"{how.prefix}/api/") or refused:
                status, error = refused or (404, "404 page not found")
                return self.send(status, {"status": "error", "errorType": "bad_data", "error": error})
            if path.endswith(BUILD):
                return self.send(200, {"status": "success", "data": how.build})
            if "query" in fields:
                fields["query"] = how.asked(fields["query"])
            url = real + path.removeprefix(how.prefix)
            asked = urllib.parse.urlencode(fields).encode()
            try:
                with urllib.request.urlopen(
                    f"{url}?{asked.decode()}" if self.command == "GET" else url, None if self.command == "GET" else asked
                ) as a:
                    return self.send(200, how.answered(json.load(a)))
            except urllib.error.HTTPError as error:
                return self.send(error.code, json.load(error))

        def send(self, status: int, body: dict) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
