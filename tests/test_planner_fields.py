"""What a field of the planner begins with: the link's figure, also where a slow browser loses what the session's state says of it."""

import runpy
from pathlib import Path

import pytest
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from obs import bundle
from obs.links import View
from obs.ui import answer, screen
from obs.ui.reader import Reader
from obs.ui.screen import Screen
from obs.window import Window

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize(("seqs", "share"), [(99, 0.5), (1024, 0.92)])
def test_a_field_begins_with_the_figure_of_the_link(seqs, share, monkeypatch):
    begun = {}
    number = DeltaGenerator.number_input

    def kept(at, label, *given, **more):
        begun[label] = given[2]
        return number(at, label, *given, **more)

    monkeypatch.setattr(DeltaGenerator, "number_input", kept)
    monkeypatch.setattr(st, "session_state", {})
    source = bundle.sample()
    window = Window(source.manifest.end - 600, source.manifest.end)
    view = View("memory", bundle=source.id, plan=f"model~llama-3.1-8b~share~{share}~seqs~{seqs}")
    found = answer.answer(view, window, window.end)
    shown = Screen(view, Reader(), (), found.about, window, found, now=window.end)
    monkeypatch.setattr(screen, "current", lambda: shown)
    runpy.run_path(str(ROOT / "pages/memory.py"))
    assert (begun["max_num_seqs"], begun["gpu_memory_utilization"]) == (seqs, share)
