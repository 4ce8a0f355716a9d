"""The dashboard's process: the pages, `GET /api/v1/diagnosis` and `GET /healthz`. Start it with `streamlit run app.py`.

The script of the pages is src/obs/main.py and not this file: with `pages/` beside the main script, Streamlit runs the page alone on
the first deep link after a start. `src` is put on the path here, so that installed requirements are enough.
"""

import sys
from pathlib import Path

import streamlit as st

ROOT = Path(__file__).resolve().parent
if str(ROOT / "src") not in sys.path:
    sys.path.insert(0, str(ROOT / "src"))

from obs.ui import warm  # noqa: E402  (needs the path)
from obs.ui.access import guard, warn_if_open  # noqa: E402  (needs the path)
from obs.ui.guard import headers  # noqa: E402  (needs the path)
from obs.ui.routes import checked_settings, routes, unknown_pages  # noqa: E402  (needs the path)
from obs.ui.sign_in import secrets  # noqa: E402  (needs the path)

settings = checked_settings()
warn_if_open(settings)
warm.up()
app = st.App(
    ROOT / "src/obs/main.py",
    routes=routes(),
    middleware=[headers(settings.frame_ancestors), guard(settings), unknown_pages(ROOT)],
    secrets=secrets(settings.oidc),
)
