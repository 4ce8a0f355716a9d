"""What is drawn again from the same figures is not made again; anything else is."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pytest

from obs.series import Array
from obs.ui import zoom
from obs.ui.kept import kept
from obs.ui.plot import Plot, plotted
from obs.ui.reader import Reader


@dataclass(frozen=True)
class Figures:
    values: Array
    names: tuple[str, ...] = ()


def test_another_figure_name_shape_or_kind_is_made_anew_and_the_same_is_not() -> None:
    made = []

    @kept(8)
    def draw(figures: Figures, lang: str) -> int:
        made.append(figures)
        return len(made)

    ours = Figures(np.array([[1.0, np.nan], [3.0, 4.0]]), ("a",))
    assert draw(ours, "en") == 1
    assert draw(Figures(ours.values.copy(), ("a",)), "en") == 1
    assert draw(ours, "es") == 2
    assert draw(replace(ours, names=("b",)), "en") == 3
    assert draw(replace(ours, values=ours.values + 1), "en") == 4
    assert draw(replace(ours, values=ours.values.reshape(1, 4)), "en") == 5
    assert draw(replace(ours, values=ours.values.T), "en") == 6
    assert draw(replace(ours, values=ours.values.view(np.int64)), "en") == 7


def test_the_oldest_goes_and_an_argument_without_a_content_is_refused() -> None:
    made = []

    @kept(2)
    def draw(figures: Array) -> None:
        made.append(float(figures[0]))

    for first in (1.0, 2.0, 3.0, 3.0, 1.0):
        draw(np.array([first]))
    assert made == [1.0, 2.0, 3.0, 1.0]
    with pytest.raises(TypeError, match="unhashable"):
        draw([1.0])  # type: ignore[arg-type]


def test_a_chart_is_one_table_with_every_row_of_its_plot_and_no_row_of_altairs() -> None:
    times = np.arange(4) * 15.0
    plot = Plot(0.0, 45.0, times, ("a", "b"), np.array([[1.0, 2.0, 3.0, 4.0], [0.0, np.nan, 1.0, 1.0]]), ("#111111", "#222222"), "count")
    table, spec = zoom.drawn(plot, Reader())
    assert isinstance(table, pa.Table)
    assert table.to_pandas().equals(plotted(plot, Reader())[0])
    assert "datasets" not in spec
    assert not [part for part in (spec, *spec["layer"]) if "data" in part]
    assert zoom.drawn(replace(plot, values=plot.values.copy()), Reader())[0] is table
    assert zoom.drawn(plot, Reader(zone="Asia/Tokyo"))[0] is not table
