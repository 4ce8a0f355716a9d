"""Viewers without a browser: websocket clients that speak Streamlit's protocol as its page does, timers included.

A viewer costs the server what a browser costs it, and this machine almost nothing. It draws nothing, and asks for no chart data.
"""

from __future__ import annotations

import time
from contextlib import ExitStack

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

MOST_BYTES = 64 * 2**20


class Viewer:
    """One tab. `base` is the dashboard's address, `page` a page's name ("" is the diagnosis), `query` what stands in the address bar.

    With `session` (a former viewer's) it comes back to that session, as a browser does whose connection broke.
    """

    def __init__(self, base: str, page: str = "", query: str = "from=now-1h&to=now", session: str = "") -> None:
        self.base, self.page, self.query = base, page, query
        self.session = ""
        self.texts: list[str] = []  # the markup of the last whole run
        self.timers: dict[str, float] = {}  # fragment -> seconds, of the last whole run
        self.runs = 0
        address = base.replace("http", "ws", 1) + "/_stcore/stream"
        # the second entry stands for the token against forged requests; without a cookie it proves nothing, and nothing is asked of it
        protocols = ["streamlit", "none", session] if session else ["streamlit"]
        self._open = ExitStack()
        self._socket = self._open.enter_context(connect(address, subprotocols=protocols, max_size=MOST_BYTES, origin=base, close_timeout=1))

    def run(self, seconds: float = 60.0) -> list[str]:
        """Draws the page, and waits until it stands: the markup that came. Raises TimeoutError."""
        self.begin()
        return self.wait(seconds)

    def begin(self, fragment: str = "") -> None:
        """Asks for a run; of a fragment where a timer asks."""
        message = BackMsg()
        state = message.rerun_script
        state.query_string, state.page_name = self.query, self.page
        state.fragment_id, state.is_auto_rerun = fragment, bool(fragment)
        state.context_info.timezone, state.context_info.locale = "UTC", "en-GB"
        state.context_info.url = f"{self.base}/{self.page}"
        self._socket.send(message.SerializeToString())

    def tick(self, seconds: float = 60.0) -> list[str]:
        """What the page's timer does when its time has come: its fragment runs, and asks for the whole page."""
        for fragment in list(self.timers):
            self.begin(fragment)
        return self.wait(seconds)

    def wait(self, seconds: float) -> list[str]:
        """The markup of the run that ends next as a whole. Raises TimeoutError, or ConnectionError where the server hung up."""
        until = time.monotonic() + seconds
        texts: list[str] = []
        timers: dict[str, float] = {}
        while True:
            left = until - time.monotonic()
            if left <= 0:
                raise TimeoutError("the page did not stand in time")
            try:
                data = self._socket.recv(timeout=left)
            except ConnectionClosed as error:
                raise ConnectionError("the server hung up") from error
            if not isinstance(data, bytes):
                continue
            message = ForwardMsg.FromString(data)
            kind = message.WhichOneof("type")
            if kind == "new_session":
                self.session, timers, texts = message.new_session.initialize.session_id, {}, []
            elif kind == "auto_rerun":
                timers[message.auto_rerun.fragment_id] = message.auto_rerun.interval
            elif kind == "delta" and (shown := message.delta.new_element.WhichOneof("type")) in ("html", "markdown"):
                texts.append(getattr(message.delta.new_element, shown).body)
            elif kind == "script_finished" and message.script_finished == ForwardMsg.FINISHED_SUCCESSFULLY:
                self.texts, self.timers, self.runs = texts, timers, self.runs + 1  # a fragment's own run ends otherwise
                return texts

    def close(self) -> None:
        """The tab is closed."""
        self._open.close()
