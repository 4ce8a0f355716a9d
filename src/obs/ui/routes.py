"""What the process answers beside the pages: the diagnosis as JSON, and whether it is alive."""

from __future__ import annotations

import asyncio
import re
import sys
import time
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import URL
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from obs import api, config, links
from obs.config import Settings
from obs.errand import Stop, attended
from obs.errors import CallError
from obs.language import negotiate, render
from obs.text import Names, say
from obs.ui.answer import source
from obs.ui.markup import base_path
from obs.ui.metrics import metrics


def checked_settings() -> Settings:
    """The settings; a wrong one ends the process with a sentence that names it, before anything is served."""
    try:
        return config.load()
    except CallError as error:
        sys.exit(f"obs: {render(error.says)}")


async def _diagnosis(request: Request) -> Response:
    """The JSON of `obs diagnose` for the parameters of a link, by the pages' own sources: what these hold is not asked for again.

    In a thread, for a slow source must not hold up the pages; and no longer than somebody waits for it.
    """
    params = {name: request.query_params.getlist(name) for name in request.query_params}
    stop = Stop()

    def diagnosed() -> tuple[int, dict[str, Any]]:
        with attended(stop.check):
            return api.diagnosis_response(params, config.load(), time.time(), source)

    async def leaves() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass
        stop.stop()

    watching = asyncio.create_task(leaves())
    try:
        status, found = await run_in_threadpool(diagnosed)
    finally:
        watching.cancel()
    return JSONResponse(found, status_code=status, headers={"Cache-Control": "no-store"})


async def _healthz(_request: Request) -> Response:
    return PlainTextResponse("ok")


async def _nothing(request: Request) -> Response:
    """A program that asks for what is not there is told so, and not given the page."""
    lang = negotiate(request.query_params.get("lang") or "")
    says = say("There is nothing at {path}; the diagnosis is at /api/v1/diagnosis.", path=Names((request.url.path,)))
    return JSONResponse({"error": render(says, lang)}, status_code=404)


class UnknownPages:
    """Leads an address that is no page to the diagnosis of the same view, which says so in the reader's language.

    Streamlit would show a dialog of its own, in English. A page is one word after the base path, asked for as a document.
    """

    def __init__(self, app: ASGIApp, root: Path, base: str = "") -> None:
        self.app = app
        self.base = base.strip("/")
        pages = {name for name in links.PAGES if name and (root / f"pages/{name}.py").exists()}
        self.known = pages | {"healthz", "metrics", "oauth2callback", "_stcore", self.base, ""}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] in ("GET", "HEAD"):
            asked = scope["path"].strip("/").removeprefix(self.base).strip("/")
            if _PAGE.fullmatch(asked) and asked not in self.known:
                url = URL(scope=scope).include_query_params(no_page=asked)
                target = f"{'/' + self.base if self.base else ''}/?{url.query}"
                await RedirectResponse(target, status_code=307)(scope, receive, send)
                return
        await self.app(scope, receive, send)


def unknown_pages(root: Path) -> Middleware:
    """The middleware, for the base path that Streamlit serves under."""
    return Middleware(UnknownPages, root=root, base=base_path())


_PAGE = re.compile(r"[^/.]{1,80}")
_ROUTES = {"/api/v1/diagnosis": _diagnosis, "/healthz": _healthz, "/metrics": metrics, "/api/{rest:path}": _nothing}


def routes() -> list[Route]:
    """The routes beside the pages: at the root, where a probe looks, and under the base path, where a proxy does."""
    return [Route(f"{at}{path}", answer) for at in dict.fromkeys(("", base_path())) for path, answer in _ROUTES.items()]
