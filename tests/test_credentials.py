"""Client certificates: who has none, a wrong one or half a one is told so without a word of the key; the right one opens."""

import pytest
from cryptography.hazmat.primitives import serialization
from tests.authority import Authority, demanding
from tests.faults import serving, success

from obs.config import SourceSettings, load
from obs.errors import CallError, SourceError
from obs.language import render
from obs.prometheus import Prometheus
from obs.series import Grid
from obs.source import Query

GRID = Grid(1_800_000_000.0, 15.0, 3)
ONE = [Query("x", "x")]


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("ours"), "ours")


@pytest.fixture(scope="module")
def address(ours):
    """A server that lets in only clients with a certificate of ours, and what it saw."""
    with serving(success([{"metric": {"a": "1"}, "values": [[GRID.start, "1"]]}]), tls=demanding(ours.pair("server"), ours)) as found:
        yield found


def asked(url, **more):
    return Prometheus(SourceSettings(url=url, name="it", **more)).answer(ONE, GRID)


def refused(url, **more):
    with pytest.raises((SourceError, CallError)) as error:
        asked(url, **more)
    text = render(error.value.says, "en")
    assert "PRIVATE KEY" not in text + repr(error.value) + str(error.value.__cause__)
    return text


def test_without_a_certificate_it_is_said_that_one_is_wanted(address, ours):
    said = refused(address[0], ca_file=ours.file)
    assert "Perhaps it asks for a client certificate" in said
    assert "OBS_PROMETHEUS_CERT_FILE" in said


def test_another_authority_s_certificate_opens_nothing(address, ours, tmp_path):
    other = Authority(tmp_path, "other").pair("client")
    assert "did not accept the one that was sent" in refused(address[0], ca_file=ours.file, cert_file=other.cert, key_file=other.key)


def test_a_server_of_another_authority_is_not_shown_the_certificate(address, ours, tmp_path):
    other, client = Authority(tmp_path, "other"), ours.pair("client")
    assert "OBS_PROMETHEUS_CA_FILE" in refused(address[0], ca_file=other.file, cert_file=client.cert, key_file=client.key)


def _locked(pair):
    """The key under a passphrase."""
    key = serialization.load_pem_private_key(pair.key.read_bytes(), None)
    under = serialization.BestAvailableEncryption(b"planted-passphrase")
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, under)


@pytest.mark.parametrize("fault", ["no PEM", "another key", "a passphrase"])
def test_a_certificate_that_cannot_be_used_names_its_settings(fault, address, ours, tmp_path):
    client, key = ours.pair("client"), tmp_path / "key"
    keys = {"no PEM": b"no key at all", "another key": ours.pair("another").key.read_bytes(), "a passphrase": _locked(client)}
    key.write_bytes(keys[fault])
    assert "no PEM, or the two do not belong together" in refused(address[0], ca_file=ours.file, cert_file=client.cert, key_file=key)


@pytest.mark.parametrize(("setting", "named"), [("cert_file", "CERT"), ("key_file", "KEY"), ("ca_file", "CA")])
def test_a_file_that_is_not_there_is_named_at_once(setting, named, address, ours, tmp_path):
    client = ours.pair("client")
    files = {"ca_file": ours.file, "cert_file": client.cert, "key_file": client.key, setting: tmp_path / "none.pem"}
    said = refused(address[0], **files)
    assert f"OBS_PROMETHEUS_{named}_FILE" in said
    assert "none.pem" in said


def test_a_key_without_a_certificate_is_refused(address, ours):
    assert "Name both" in refused(address[0], ca_file=ours.file, key_file=ours.pair("client").key)


def test_a_file_that_vanishes_while_obs_runs_is_named(address, ours, tmp_path):
    client = ours.pair("client")
    source = Prometheus(SourceSettings(url=address[0], name="it", ca_file=ours.file, cert_file=client.cert, key_file=client.key))
    client.key.unlink()
    with pytest.raises(CallError) as error:
        source.answer(ONE, GRID)
    assert "OBS_PROMETHEUS_KEY_FILE" in render(error.value.says, "en")


# ---------------------------------------------------------------- what it opens


def test_the_right_certificate_opens_in_two_files_and_in_one(address, ours, tmp_path):
    client, both = ours.pair("client"), tmp_path / "both.pem"
    both.write_bytes(client.cert.read_bytes() + client.key.read_bytes())
    for files in ({"cert_file": client.cert, "key_file": client.key}, {"cert_file": both}):
        assert asked(address[0], ca_file=ours.file, **files)[0].labels == ({"a": "1"},)


def test_a_certificate_that_was_rotated_is_used_from_the_next_connection_on(address, ours, tmp_path):
    other, client = Authority(tmp_path, "other").pair("client"), ours.pair("client")
    source = Prometheus(SourceSettings(url=address[0], name="it", ca_file=ours.file, cert_file=other.cert, key_file=other.key))
    with pytest.raises(SourceError):
        source.answer(ONE, GRID)
    other.cert.write_bytes(client.cert.read_bytes())
    other.key.write_bytes(client.key.read_bytes())
    assert source.answer(ONE, GRID)[0].labels == ({"a": "1"},)


def test_the_settings_of_the_environment_reach_the_source(monkeypatch, tmp_path):
    monkeypatch.setenv("OBS_PROMETHEUS_URL", "https://127.0.0.1:1")
    for name in ("CERT", "KEY"):
        monkeypatch.setenv(f"OBS_PROMETHEUS_{name}_FILE", str(tmp_path / name))
    source = load().source()
    assert (source.cert_file, source.key_file) == (tmp_path / "CERT", tmp_path / "KEY")
