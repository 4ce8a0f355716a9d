"""A bundle answers what the Prometheus answered that it was made from; what is no bundle is refused with a sentence."""

import io
import json
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.recordings import T0, Recording

from obs import bundle, bundle_file, bundle_table
from obs.bundle import Bundle, incidents, pack, resampled, sample, write
from obs.collect import collect
from obs.config import SourceSettings
from obs.errors import CallError
from obs.language import render
from obs.prometheus import Prometheus
from obs.series import Grid
from obs.shelf import named
from obs.signals import Status
from obs.window import Window

KV_PRESSURE = Window(1796036544, 1796036936)


@pytest.fixture(scope="module")
def packed(lab) -> bytes:
    return pack(lab, Window(1796036400, 1796037100), {})


def rebuilt(data: bytes, manifest=None, readings=None) -> bytes:
    """The same file with another member."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        found = json.loads(old.read("manifest.json"))
        new.writestr("manifest.json", json.dumps({**found, **manifest}) if isinstance(manifest, dict) else manifest or json.dumps(found))
        new.writestr("readings.parquet", readings if readings is not None else old.read("readings.parquet"))
    return out.getvalue()


def of_schema_1() -> Bundle:
    """The sample as it would have been written before bundles kept info metrics and alerts."""
    data = bundle.files("obs").joinpath("sample/lab.obs.zip").read_bytes()
    return Bundle(rebuilt(data, {"schema": 1, "beside": None}))


def parquet(**columns) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.table(columns), out)
    return out.getvalue()


def refusal(data: bytes) -> str:
    with pytest.raises(CallError) as error:
        Bundle(data, "from outside.zip")
    said = render(error.value.says, "en")
    assert "from outside.zip" in said
    return said


def assert_same(one, other):
    assert one.replicas == other.replicas
    assert one.grid == other.grid
    for name, reading in one.signals.items():
        found = other.signals[name]
        assert (found.status, found.rows, found.metric, found.promql) == (reading.status, reading.rows, reading.metric, reading.promql), (
            name
        )
        np.testing.assert_allclose(
            found.values, reading.values, rtol=1e-12, atol=1e-12, err_msg=name
        )  # a counter is added up from where one looks
    for name, buckets in one.buckets.items():
        np.testing.assert_array_equal(other.buckets[name].rates, buckets.rates)


# ---------------------------------------------------------------- what is no bundle


def test_a_file_that_is_no_bundle_is_refused(packed):
    for data in (b"", b"PK\x03\x04", b"hello" * 100, b"\x00" * 1000):
        assert "not a whole evidence bundle" in refusal(data)


@pytest.mark.parametrize("share", [0.05, 0.3, 0.6, 0.95, 0.999])
def test_a_bundle_that_is_cut_off_is_refused(packed, share):
    assert "cut off" in refusal(packed[: int(len(packed) * share)])


def test_a_bundle_with_a_flipped_byte_is_refused(packed):
    for at in range(200, len(packed), len(packed) // 25):
        try:
            Bundle(packed[:at] + bytes([packed[at] ^ 0xFF]) + packed[at + 1 :], "flipped")
        except CallError:
            continue
        pytest.fail(f"byte {at} does not matter")  # the zip's own checksums see every one


def test_a_bundle_of_a_later_version_says_so(packed):
    assert "newer version" in refusal(rebuilt(packed, {"schema": bundle_file.SCHEMA + 1}))


@pytest.mark.parametrize(
    "manifest",
    [
        {"schema": "1"} | {"grid_count": "many"},
        {"grid_count": 10**12},
        {"grid_step": 0},
        {"grid_start": -5},
        {"queries": [{"key": 1}]},
        {"source": None},
        {"queries": "all"},
        {"scope": {"a": 1}},
    ],
)
def test_a_manifest_that_is_wrong_is_refused_with_the_place(packed, manifest):
    assert "manifest is wrong at" in refusal(rebuilt(packed, manifest))


@pytest.mark.parametrize("manifest", ["", "[]", "null", '"x"', "{", "\ud800".encode("utf-8", "surrogatepass")])
def test_a_manifest_that_is_none_is_refused(packed, manifest):
    assert "bundle" in refusal(rebuilt(packed, manifest or " "))


def test_series_that_do_not_fit_the_manifest_are_refused(packed):
    steps, floats, one = Bundle(packed).manifest.grid_count, pa.list_(pa.float64()), pa.array([0], pa.int32())
    short, whole = pa.array([[1.0, 2.0]], floats), pa.array([[0.0] * steps], floats)
    ragged = pa.array([[0.0] * (steps - 1), [0.0] * (steps + 1)], floats)
    for readings in (
        b"",
        b"PAR1",
        parquet(a=[1]),
        parquet(query=one, labels=["{}"], values=short),
        parquet(query=pa.array([0, 0], pa.int32()), labels=["{}", "{}"], values=ragged),
        parquet(query=pa.array([10**6], pa.int32()), labels=["{}"], values=whole),
        parquet(query=pa.array([-1], pa.int32()), labels=["{}"], values=whole),
        parquet(query=pa.array([None], pa.int32()), labels=["{}"], values=whole),
        parquet(query=one, labels=["[]"], values=whole),
        parquet(query=one, labels=['{"a": 1}'], values=whole),
        parquet(query=one, labels=pa.array([None], pa.string()), values=whole),
        parquet(query=one, labels=["{}"], values=pa.array([None], floats)),
        parquet(query=one, labels=["{}"], values=pa.array([[None] * steps], floats)),
        parquet(query=["x"], labels=["{}"], values=whole),
        parquet(query=one, labels=["{}"], values=pa.array(["text"])),
    ):
        assert "not a whole evidence bundle" in refusal(rebuilt(packed, readings=readings))


def test_a_zip_bomb_is_refused_before_it_fills_the_memory(packed, monkeypatch):
    monkeypatch.setattr(bundle_file, "LARGEST_MANIFEST", 1 << 20)
    assert "too much" in refusal(rebuilt(packed, b" " * (2 << 20) + b"{}"))
    monkeypatch.setattr(bundle_table, "LARGEST_VALUES", 1000)
    bomb = parquet(query=[0] * 3000, labels=["{}"] * 3000, values=pa.array([[0.0]] * 3000, pa.list_(pa.float64())))
    assert "too much" in refusal(rebuilt(packed, readings=bomb))


def test_a_header_that_lies_about_a_members_size_is_found_out(packed, monkeypatch):
    data = rebuilt(packed, b" " * (2 << 20) + b"{}")
    at = data.rindex(b"PK\x01\x02")
    first = data.index(b"PK\x01\x02")
    lying = bytearray(data)
    for directory in (first, at):
        lying[directory + 24 : directory + 28] = (10).to_bytes(4, "little")
    assert "bundle" in refusal(bytes(lying))


def test_a_file_that_is_missing_or_a_folder_is_refused(tmp_path):
    for path in (tmp_path / "none.zip", tmp_path):
        with pytest.raises(CallError, match="cannot be read"):
            Bundle(path)


# ---------------------------------------------------------------- what a bundle answers


def test_a_bundle_reads_like_the_prometheus_it_was_made_from(lab, packed):
    held = Bundle(packed)
    assert_same(collect(lab, Window(1796036400, 1796037100), {}), collect(held, held.window, {}))
    assert_same(collect(lab, Window(1796036500, 1796036700), {}), collect(held, Window(1796036500, 1796036700), {}))


def test_a_bundle_is_the_same_file_when_it_is_made_again(lab, packed):
    assert pack(lab, Window(1796036400, 1796037100), {}) == packed
    assert pack(Bundle(packed), Window(1796036400, 1796037100), {})[:4] == b"PK\x03\x04"  # a bundle of a bundle


def test_a_window_outside_the_recording_is_refused(packed):
    with pytest.raises(CallError) as error:
        collect(Bundle(packed), Window(1796099999, 1796100099), {})
    assert "2026-11-30" in render(error.value.says, "en")


def test_a_coarser_step_keeps_the_peaks(packed):
    readings = collect(Bundle(packed), Window(1796036400, 1796037100), {}, step=60)
    assert np.nanmax(readings.signals["requests_waiting"].values) == 67


def test_a_finer_step_invents_nothing():
    own, values = Grid(0, 60, 3), np.array([[1.0, np.nan, 3.0]])
    np.testing.assert_array_equal(resampled(values, own, Grid(-30, 30, 8), "last"), [[np.nan, 1, 1, np.nan, np.nan, 3, 3, np.nan]])


def test_a_coarser_grid_takes_the_worst_side():
    own, values = Grid(0, 10, 6), np.array([[1.0, 5.0, 2.0, np.nan, 0.0, 4.0]])
    np.testing.assert_array_equal(resampled(values, own, Grid(20, 30, 2), "max"), [[5, 4]])
    np.testing.assert_array_equal(resampled(values, own, Grid(20, 30, 2), "min"), [[1, 0]])
    np.testing.assert_array_equal(resampled(values, own, Grid(20, 30, 2), "last"), [[2, 4]])


def test_a_bundle_filters_by_the_labels_that_its_rows_carry(recorded):
    source = recorded(Recording().vllm("a").vllm("b", namespace="dev", model="qwen"))
    held = Bundle(pack(source, Window(T0 + 600, T0 + 1800), {}))
    for scope in ({"namespace": ("dev",)}, {"model": ("llama",)}, {"namespace": ("dev", "prod")}, {"namespace": ("x",)}):
        assert_same(collect(source, held.window, scope), collect(held, held.window, scope))
    assert [r.name for r in collect(held, held.window, {"replica": ("b",)}).replicas] == ["b"]


def test_a_label_that_the_rows_do_not_carry_is_said(packed):
    readings = collect(Bundle(packed), KV_PRESSURE, {"zone": ("a",)})
    assert readings.engine_seen
    assert any("zone" in render(note, "en") for note in readings.notes)


def test_no_address_and_no_secret_is_in_a_bundle(lab_url, tmp_path):
    url = lab_url.replace("http://", "http://user:hunter2@")
    source = Prometheus(SourceSettings(url=url, token="hunter3", name="lab", tenant="hunter4"))
    path = tmp_path / "a.zip"
    write(path, source, KV_PRESSURE, {})
    with zipfile.ZipFile(path) as archive:
        text = b"".join(archive.read(name) for name in archive.namelist())
    port = lab_url.rpartition(":")[2].encode()
    assert b"hunter" not in text
    assert port not in archive.filename.encode() + text[: text.index(b"PAR1")]


def test_a_bundle_is_found_by_its_content_id_in_the_folder(packed, tmp_path):
    (tmp_path / "night.zip").write_bytes(packed)
    (tmp_path / "other.zip").write_bytes(b"no bundle")
    wanted = bundle.content_id(packed)
    assert named(wanted, tmp_path).id == wanted
    for wrong in ("0" * 16, "../night", "night.zip", "", "<script>"):
        with pytest.raises(CallError, match="no bundle with the id"):
            named(wrong, tmp_path)
    with pytest.raises(CallError):
        named(wanted, None)


# ---------------------------------------------------------------- the sample


def test_the_sample_is_small_and_knows_no_truth():
    found = sample()
    assert len(bundle.files("obs").joinpath("sample/lab.obs.zip").read_bytes()) < 1_000_000
    assert [name for name in found.manifest.names if name.startswith("lab_")] == []
    assert [q.key for q in found.manifest.queries if "lab_" in q.promql] == []
    assert found.about().name == "sample"


def test_the_sample_is_what_the_recording_gives(lab):
    found = sample()
    assert_same(collect(lab, KV_PRESSURE, {}), collect(found, KV_PRESSURE, {}))


def test_every_incident_lies_in_the_sample_and_it_opens_on_the_kv_pressure():
    about, found = sample().about(), {incident.name: incident for incident in incidents()}
    assert len(found) == 22
    assert all(about.start <= i.start < i.end <= about.end for i in found.values())
    assert about.opening[0] < found["kv_pressure"].start < found["kv_pressure"].end < about.opening[1]
    readings = collect(sample(), Window(*about.opening), {})
    assert readings.signals["kv_use"].status is Status.MEASURED
    assert np.nanmax(readings.signals["kv_use"].values) == 1.0
