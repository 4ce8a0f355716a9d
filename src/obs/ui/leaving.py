"""A run of the page ends while it waits, where its page was closed, or where the person chose something else meanwhile."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from streamlit.runtime.scriptrunner_utils.script_run_context import get_run_yield_check

from obs import errand


def attended() -> AbstractContextManager[None]:
    """Within, a wait for the source ends as Streamlit's own waits do: this run is stopped, or begun anew with what was chosen."""
    check = get_run_yield_check()
    return errand.attended(check) if check else nullcontext()
