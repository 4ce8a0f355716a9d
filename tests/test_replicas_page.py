"""Which one is sick? Figures compared; what is not seen is not well, and a fleet that is sick as a whole has no sick one."""

import numpy as np
import pytest
from tests.arrays import HEALTHY, HEALTHY_MEANS, by_hand, course, facts

from obs import heat, sick
from obs.diagnosis import diagnose
from obs.language import render
from obs.standing import Stands
from obs.ui import replica_heat
from obs.ui.reader import Reader
from obs.verdict import State

STEPS = 240  # 15 s each; the window is the second half of them
FULL = {"kv_use": 0.99, "preemptions": 2.0, "requests_waiting": 40.0, "requests_running": 60.0}


def odd(replicas, place, figure, usual):
    """A level that is `figure` on one replica in the window, and `usual` before it and on the others."""
    out = np.full((replicas, STEPS), float(usual))
    out[place, STEPS // 2 :] = figure
    return out


def fleet(replicas=4, means=None, **levels):
    levels = {**HEALTHY, "counter_resets": 0.0, **levels}
    readings = by_hand(STEPS, replicas=replicas, means={**HEALTHY_MEANS, **(means or {})}, **levels)
    return sick.fleet(facts(readings), diagnose(readings))


def pressed(replicas, place):
    """KV pressure on one replica from the window's beginning."""
    levels = {name: odd(replicas, place, figure, HEALTHY[name]) for name, figure in FULL.items()}
    return fleet(replicas, means={"e2e_latency": odd(replicas, place, 30.0, 3.0)}, **levels)


def by_name(found):
    return {standing.replica.name: standing for standing in found.standings}


def figure(found, title):
    return next(f for f in found.said.figures if render(f.title).startswith(title))


# ---------------------------------------------------------------- not known, and nothing to compare


def test_without_replicas_nobody_can_tell():
    readings = by_hand(STEPS, replicas=0)
    found = sick.fleet(facts(readings), diagnose(readings))
    assert found.said.state is State.UNKNOWN
    assert render(found.said.says) == "Nobody can tell: no replica of an engine is in this window and scope."
    assert found.said.figures == ()


def test_a_replica_without_figures_is_neither_well_nor_zero():
    known = np.ones((3, 1))
    known[1] = np.nan
    found = fleet(3, **{name: known * HEALTHY[name] for name in HEALTHY if not name.startswith("gateway") and name != "up"})
    lost = by_name(found)["pod-1"]
    assert (lost.stands, lost.state) == (Stands.UNKNOWN, State.UNKNOWN)
    assert [(cell.value, render(cell.why)) for name, cell in lost.cells.items() if name == "kv_use"] == [(None, "not measured")]
    assert found.said.state is State.UNKNOWN
    assert render(found.said.says) == "None that is seen; of pod-1 nothing is known at the end of the window."
    assert found.standings[0] is lost


def test_no_traffic_is_a_word_and_not_0_seconds():
    readings = by_hand(STEPS, replicas=3, means=HEALTHY_MEANS, **{**HEALTHY, "counter_resets": 0.0})
    ttft = readings.signals["ttft"]
    ttft.total[2], ttft.count[2] = 0.0, 0.0
    cells = by_name(sick.fleet(facts(readings), diagnose(readings)))
    assert (cells["pod-2"].cells["ttft"].value, render(cells["pod-2"].cells["ttft"].why)) == (None, "no traffic")
    assert cells["pod-0"].cells["ttft"].value == pytest.approx(0.1)


def test_restarts_that_nobody_counts_are_not_none():
    found = fleet(3, counter_resets=np.nan)
    assert figure(found, "Restarts").value is None
    assert figure(found, "Restarts").state is State.UNKNOWN
    assert figure(fleet(3), "Restarts").value == 0


def test_of_two_nobody_is_the_odd_one():
    found = fleet(2, requests_waiting=odd(2, 0, 4.0, 0.0))
    assert found.outliers == ()
    assert render(found.said.says) == "None: both replicas work. Of two, nobody can tell which one is odd."


def test_ordinary_spread_is_no_outlier():
    chance = np.random.default_rng(3)
    found = fleet(30, kv_use=0.4 + 0.4 * chance.random((30, 1)), requests_running=chance.integers(2, 9, (30, STEPS)).astype(float))
    assert found.outliers == ()
    assert render(found.said.says) == "None: all 30 replicas work, and none stands far from the others."


def test_where_all_differ_nobody_stands_out():
    """Eighteen running are more than twice the median of eight, but these replicas are four apart anyway."""
    found = fleet(7, requests_running=np.array([3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 18.0])[:, None])
    assert found.outliers == ()


def test_two_minutes_away_from_the_others_are_chance():
    kv = np.full((4, STEPS), 0.2)
    kv[2, 200:208] = 0.85
    assert fleet(kv_use=kv).outliers == ()


# ---------------------------------------------------------------- one is sick


def test_the_sick_one_comes_first_with_its_row_and_its_figures():
    found = pressed(4, 2)
    first = found.standings[0]
    assert (first.replica.name, first.stands, first.row) == ("pod-2", Stands.APPLIES, "latency_without_errors")
    assert found.said.state is State.APPLIES
    assert render(found.said.says).startswith("1 of 4 replicas is sick. pod-2: Latency rises without errors, since 08:29:45")
    assert {name: cell.value for name, cell in first.cells.items()} == {
        "kv_use": 0.99, "requests_waiting": 40.0, "requests_running": 60.0, "generation_tokens": 100.0, "ttft": pytest.approx(0.1),
        "ttft_p95": None,
        "restarts": 0.0,
    }  # fmt: skip
    assert figure(found, "Sick").value == 1
    worst = figure(found, "KV cache use, fullest")
    assert (worst.value, render(worst.says)) == (0.99, "on pod-2; the median replica 30 %")
    assert [render(advice) for advice in found.said.advice][1] == "pod-2 has more to do than the others: the router may be sticky."


def test_where_all_are_sick_it_is_not_one_of_them():
    levels = {name: np.where(np.arange(STEPS) < STEPS // 2, HEALTHY[name], value) for name, value in FULL.items()}
    found = fleet(3, means={"e2e_latency": np.where(np.arange(STEPS) < STEPS // 2, 3.0, 30.0)}, **levels)
    assert render(found.said.says).startswith("Not one of them: all 3 replicas are in trouble (Latency rises without errors, since ")
    assert render(found.said.advice[0]).startswith("The cause lies in what all share")
    assert found.outliers == ()


def test_a_stalled_one_is_sicker_than_a_slow_one():
    steps = np.full((4, STEPS), 50.0)
    steps[3, 180:] = 0.0
    found = fleet(engine_steps=steps, requests_running=5.0)
    assert (found.standings[0].replica.name, found.standings[0].stands) == ("pod-3", Stands.STALLED)
    assert render(found.standings[0].says) == "work is held and no engine step is made, since 08:45:00"


def test_one_whose_scrapes_fail_is_not_known_and_comes_before_those_that_work():
    up = np.ones((3, STEPS))
    up[1, 200:] = 0.0
    found = fleet(3, up=up)
    assert (found.standings[0].replica.name, found.standings[0].state) == ("pod-1", State.UNKNOWN)
    assert render(found.said.says) == "1 of 3 replicas is sick. pod-1: nothing is known of it since 08:50:00."
    assert render(figure(found, "Replicas").says) == "2 seen at the end of the window"


def test_a_replica_that_is_gone_is_said_to_be():
    here = np.ones((3, STEPS))
    here[0, 150:] = np.nan
    found = fleet(3, **{name: here * HEALTHY[name] for name in HEALTHY if not name.startswith("gateway")})
    assert by_name(found)["pod-0"].stands is Stands.GONE
    assert render(by_name(found)["pod-0"].says) == "last seen at 08:37:15: replaced, scaled down or dead"


def test_a_restart_is_counted_once_and_a_new_replica_has_none():
    resets = np.zeros((3, STEPS))
    resets[1, 150:170] = 1.0
    found = fleet(3, counter_resets=resets)
    assert {name: standing.cells["restarts"].value for name, standing in by_name(found).items()} == {"pod-0": 0, "pod-1": 1, "pod-2": 0}
    assert by_name(found)["pod-1"].stands is Stands.RESTARTED
    assert render(found.said.says) == "Perhaps pod-1: restarted (1 time in this window)."
    later = np.ones((3, STEPS))
    later[2, :150] = np.nan
    levels = {name: later * HEALTHY[name] for name in HEALTHY if not name.startswith("gateway")}
    assert by_name(fleet(3, **levels))["pod-2"].cells["restarts"].value == 0


def test_an_outlier_is_named_against_the_median_before_any_row_applies():
    found = fleet(5, kv_use=odd(5, 4, 0.8, 0.2))
    assert found.said.state is State.SUSPECTED
    assert render(found.said.says) == "None is in trouble, but pod-4 stands out: KV cache use 80 %, the median of all 20 %."
    (far,) = found.outliers
    assert (far.value, far.usual, far.end) == (pytest.approx(0.8), pytest.approx(0.2), None)
    assert by_name(found)["pod-4"].stands is Stands.OUTLIER


def test_one_that_makes_half_of_the_tokens_stands_out_too():
    found = fleet(5, generation_tokens=odd(5, 1, 40.0, 100.0))
    assert [(far.replica, far.signal.id) for far in found.outliers] == [("pod-1", "generation_tokens")]
    assert render(found.said.advice[0]).startswith("pod-1 makes fewer tokens than the others: see whether it gets as much work")


def test_a_slow_one_with_as_much_to_do_is_slow_by_itself():
    found = fleet(5, means={"itl": odd(5, 3, 0.06, 0.02)})
    assert [(far.replica, far.signal.id, render(far.says)) for far in found.outliers] == [
        ("pod-3", "itl", "Inter-token latency 60 ms, the median of all 20 ms")
    ]
    assert render(found.said.advice[0]).startswith("pod-3 is slower than the others: look at its GPU")


def test_a_fleet_without_requests_is_idle_and_nothing_tells_whether_one_is_sick():
    found = fleet(3, **dict.fromkeys(("requests_running", "generation_tokens", "requests_finished", "engine_steps"), 0.0))
    assert {standing.stands for standing in found.standings} == {Stands.IDLE}
    assert found.said.state is State.UNKNOWN
    assert render(found.said.says).startswith("No traffic: no replica had a request in this window")


# ---------------------------------------------------------------- the heat map


def test_forty_replicas_have_a_row_each_and_of_a_thousand_the_sickest_thirty():
    readings = by_hand(STEPS, replicas=1000, kv_use=np.linspace(0, 0.9, 1000)[:, None])
    found = heat.heat(facts(readings), "kv_use", list(range(999, -1, -1)))
    assert found.values.shape[0] == heat.ROWS
    assert found.values.shape[1] <= heat.COLUMNS
    assert [len(row) for row in found.rows] == [1] * 30 + [97] * 10
    assert found.rows[0] == ("pod-999",)
    assert found.values[30, 0] == pytest.approx(0.9 * 969 / 999)  # the highest of its 97
    few = heat.heat(facts(by_hand(STEPS, replicas=3, kv_use=0.5)), "kv_use", [2, 0, 1])
    assert few.rows == (("pod-2",), ("pod-0",), ("pod-1",))


def test_a_cell_without_figures_is_a_gap_and_a_peak_is_not_averaged_away():
    kv = course(STEPS, (0, 0.1), (150, 0.9), (151, 0.1))
    kv[180:200] = np.nan
    found = heat.heat(facts(by_hand(STEPS, kv_use=kv)), "kv_use", [0])
    at = dict(zip(found.starts.tolist(), found.values[0].tolist(), strict=True))
    first = found.starts[0]
    assert at[first + 30 * 15.0] == 0.9
    assert np.isnan(at[first + 70 * 15.0])
    assert at[first] == 0.1


def test_a_mean_in_a_cell_is_the_sum_by_the_count():
    readings = by_hand(STEPS, step=60.0, before=0, means={"ttft": 1.0})
    ttft = readings.signals["ttft"]
    ttft.total[0, ::2], ttft.count[0, ::2] = 90.0, 9.0  # ten seconds, of nine times as many requests as the other minutes' one second
    found = heat.heat(facts(readings), "ttft", [0])
    assert found.values[0, 0] == pytest.approx((90 + 1) / (9 + 1))


def test_a_long_name_keeps_its_end_and_the_tooltip_has_all_of_it():
    pods = [f"decode-pool-llama-3-70b-instruct-fp8-{part}-0123456789" for part in ("7c9d8f6b5d-x2v9q", "7c9d8f6b5d-zzk4t", "5f7b")]
    found = heat.Heat(tuple((pod,) for pod in pods), np.array([0.0]), 60.0, np.ones((3, 1)))
    names = replica_heat.labels(found.rows, Reader())
    assert names == [f"…{pod.removeprefix('decode-pool-llama-3-70b-instruct-fp8-')}" for pod in pods]
    drawn = replica_heat.specification(found, names, "ratio", 1.0, (0.0, 60.0), Reader())["layer"][0]
    full = next(step["calculate"] for step in drawn["transform"] if step.get("as") == "full")
    assert all(f'"{pod}"' in full for pod in pods)
    assert "full" in {tip["field"] for tip in drawn["encoding"]["tooltip"]}
