"""Readings in files, in a real browser: taken along from one dashboard, opened on another one whose Prometheus is gone."""

from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page, expect
from tests.browser.conftest import KV, answered, states

from obs.bundle import Bundle


def upload(page: Page, file: str) -> None:
    page.locator("input[type=file]").set_input_files(file)


def test_the_readings_of_a_window_are_taken_along_and_open_where_prometheus_is_gone(
    sample: str, dashboard: Callable[..., str], person: Callable[..., Page], tmp_path: Path
) -> None:
    page = person(accept_downloads=True)
    answered(page, f"{sample}/?{KV}")
    before = states(page)
    page.get_by_role("button", name="Share").click()
    page.get_by_text("Other names for replicas, namespaces and models").click()
    expect(page.get_by_role("checkbox", name="Other names")).to_be_checked()
    with page.expect_download() as download:
        page.get_by_role("button", name="Readings").click()
    file = tmp_path / download.value.suggested_filename
    download.value.save_as(file)
    assert file.name == "obs-2026-11-30T110000Z.obs.zip"
    assert Bundle(file).manifest.pseudonyms

    folder = tmp_path / "bundles"
    elsewhere = dashboard(prometheus_url="http://127.0.0.1:1", bundle_dir=str(folder))
    (tmp_path / "cut.zip").write_bytes(file.read_bytes()[:-500])
    page.goto(f"{elsewhere}/incidents")
    upload(page, str(tmp_path / "cut.zip"))
    expect(page.locator(".off[role=alert]")).to_contain_text("cut.zip is not a whole evidence bundle")
    page.goto(f"{elsewhere}/incidents")
    upload(page, str(file))
    page.locator(".answer .headline").wait_for()
    expect(page.locator("section.row").first).to_be_visible()
    assert states(page) == before
    id_ = Bundle(file).id
    assert f"bundle={id_}" in page.url
    assert [path.name for path in folder.iterdir()] == [f"{id_}.obs.zip"]

    page.goto(f"{elsewhere}/kv?{KV}")  # a link into Prometheus, which is gone
    page.locator(".failed").wait_for()
    page.locator(".sample a").click()
    page.locator(".said .headline").wait_for()
    assert f"bundle={id_}" in page.url
    assert "100" in page.locator(".stats").inner_text()
    page.goto(f"{elsewhere}/incidents?lang=es")
    expect(page.locator(".kept-line")).to_contain_text("seudónimos")
