"""What the process answers beside the pages: the diagnosis as JSON, and whether it is alive."""

from __future__ import annotations

import sys
import time

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from obs import api, config
from obs.config import Settings
from obs.errors import CallError
from obs.language import render


def checked_settings() -> Settings:
    """The settings; a wrong one ends the process with a sentence that names it, before anything is served."""
    try:
        return config.load()
    except CallError as error:
        sys.exit(f"obs: {render(error.says)}")


async def _diagnosis(request: Request) -> Response:
    """The JSON of `obs diagnose` for the parameters of a link. In a thread: a slow source must not hold up the pages."""
    params = {name: request.query_params.getlist(name) for name in request.query_params}
    status, found = await run_in_threadpool(api.diagnosis_response, params, config.load(), time.time())
    return JSONResponse(found, status_code=status, headers={"Cache-Control": "no-store"})


async def _healthz(_request: Request) -> Response:
    return PlainTextResponse("ok")


ROUTES = [Route("/api/v1/diagnosis", _diagnosis), Route("/healthz", _healthz)]
