"""Settings: which wins, what a wrong one says, and that secrets stay where they are."""

import pytest

from obs.config import SourceSettings, load, masked
from obs.errors import CallError
from obs.language import render


def said(error) -> str:
    return str(error.value.says)


@pytest.fixture(autouse=True)
def _clean(monkeypatch):
    for name in ("OBS_CONFIG", "OBS_PROMETHEUS_URL", "OBS_PROMETHEUS_TIMEOUT_SECONDS", "OBS_BUNDLE_DIR"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OBS_PROMETHEUS_TIMEOUT_SECONDS", "soon"),
        ("OBS_PROMETHEUS_TIMEOUT_SECONDS", "-1"),
        ("OBS_PROMETHEUS_URL", "prometheus:9090"),
        ("OBS_PROMETHEUS_URL", "file:///etc/passwd"),
        ("OBS_PROMETHEUS_URL", "http://"),
        ("OBS_PROMETHEUS_URL", "http://[::1"),
        ("OBS_PROMETHEUS_URL", "http://a:99999"),
        ("OBS_THRESHOLDS__KV_USE", "high"),
        ("OBS_THRESHOLDS__KV_USE", "7"),
        ("OBS_THRESHOLDS__KV_USE", "0"),
        ("OBS_THRESHOLDS__KV_USE", "nan"),
        ("OBS_THRESHOLDS__HOLD", "-120"),
        ("OBS_THRESHOLDS__HOLD", "inf"),
        ("OBS_THRESHOLDS__NOPE", "0.5"),
    ],
)
def test_a_wrong_value_names_its_variable(monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    with pytest.raises(CallError) as error:
        load()
    assert name in render(error.value.says)


@pytest.mark.parametrize(("name", "value"), [("kv_use", 1.0), ("kv_use", 0.01), ("hold", 600.0), ("waiting", 50.0)])
def test_a_figure_that_readings_can_reach_is_taken(monkeypatch, name, value):
    monkeypatch.setenv(f"OBS_THRESHOLDS__{name.upper()}", str(value))
    assert load().thresholds == {name: value}


def test_a_wrong_option_is_not_blamed_on_a_variable():
    with pytest.raises(CallError) as error:
        load(prometheus_url="notaurl")
    assert render(error.value.says).startswith("--prometheus-url is no address")
    assert "OBS_" not in render(error.value.says)


def test_a_wrong_value_is_not_repeated(monkeypatch):
    monkeypatch.setenv("OBS_PROMETHEUS_URL", "ftp://user:hunter2@host")
    with pytest.raises(CallError) as error:
        load()
    assert "hunter2" not in said(error)


def test_a_settings_file_that_is_missing_or_no_toml_is_said(monkeypatch, tmp_path):
    monkeypatch.setenv("OBS_CONFIG", str(tmp_path / "none.toml"))
    with pytest.raises(CallError, match="OBS_CONFIG"):
        load()
    (tmp_path / "broken.toml").write_text("a = = 1")
    monkeypatch.setenv("OBS_CONFIG", str(tmp_path / "broken.toml"))
    with pytest.raises(CallError, match="settings"):
        load()


def test_an_unknown_setting_in_the_file_is_named(monkeypatch, tmp_path):
    (tmp_path / "obs.toml").write_text("prometheus_ulr = 'http://a'")
    monkeypatch.setenv("OBS_CONFIG", str(tmp_path / "obs.toml"))
    with pytest.raises(CallError) as error:
        load()
    assert "PROMETHEUS_ULR" in said(error)


def test_the_command_line_wins_over_the_environment_and_that_over_the_file(monkeypatch, tmp_path):
    (tmp_path / "obs.toml").write_text("prometheus_url = 'http://file'\nprometheus_timeout_seconds = 7\n[thresholds]\nkv_use = 0.8\n")
    monkeypatch.setenv("OBS_CONFIG", str(tmp_path / "obs.toml"))
    assert load().source().url == "http://file"
    assert load().thresholds == {"kv_use": 0.8}
    monkeypatch.setenv("OBS_PROMETHEUS_URL", "http://environment")
    assert load().source().url == "http://environment"
    assert load(prometheus_url="http://given").source().url == "http://given"
    assert load(prometheus_url=None).source().timeout_seconds == 7


def test_several_named_sources_come_from_the_file(monkeypatch, tmp_path):
    (tmp_path / "obs.toml").write_text(
        "[sources.east]\nurl = 'http://east:9090/prom/'\ntenant = 'a'\n[sources.west]\nurl = 'http://west'\n"
    )
    monkeypatch.setenv("OBS_CONFIG", str(tmp_path / "obs.toml"))
    settings = load()
    assert (settings.source("east").url, settings.source("east").tenant, settings.source("east").name) == (
        "http://east:9090/prom",
        "a",
        "east",
    )
    assert settings.source().name == "east"
    with pytest.raises(CallError) as error:
        settings.source("north")
    assert "west" in said(error)


def test_without_any_source_there_is_none():
    assert load().source() is None


def test_secrets_are_in_no_repr(monkeypatch):
    monkeypatch.setenv("OBS_PROMETHEUS_URL", "http://user:hunter2@host:9090/p?key=hunter3")
    monkeypatch.setenv("OBS_PROMETHEUS_TOKEN", "hunter4")
    settings = load()
    for shown in (repr(settings), str(settings), repr(settings.source()), settings.source().address, repr(settings.model_dump())):
        assert "hunter4" not in shown
    for shown in (repr(settings), repr(settings.source()), settings.source().address):
        assert "hunter" not in shown


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://host:9090", "http://host:9090"),
        ("https://user:pass@host/prom", "https://***@host/prom"),
        ("http://user@host", "http://***@host"),
        ("http://a:b@c@host", "http://***@host"),
        ("http://host/api?token=x#y", "http://host/api"),
        ("http://[::1", "***"),
    ],
)
def test_an_address_is_shown_without_credentials(url, shown):
    assert masked(url) == shown


def test_a_trailing_slash_does_not_double():
    assert SourceSettings(url="http://host/prom/").url == "http://host/prom"
