"""Everything that a page may need is loaded before the first is asked for, and then left out of the collections of garbage.

Streamlit orders a whole collection after each run of a page: with some 150,000 objects that came with the libraries and never go, it took
as long as drawing the page did.
"""

from __future__ import annotations

import gc
from importlib import import_module
from pkgutil import iter_modules

from obs import ui


def up() -> None:
    """Loads the modules of the dashboard, and freezes what there is by then."""
    for module in iter_modules(ui.__path__):
        import_module(f"obs.ui.{module.name}")
    gc.collect()
    gc.freeze()
