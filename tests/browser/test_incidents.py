"""Saved incidents in a real browser: kept with notes, edited by two at once, searched, deleted, and read after Prometheus has forgotten."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from tests.browser.conftest import KV, states, too_wide
from tests.browser.moving import Clock, ahead


@pytest.fixture
def kept(dashboard: Callable[..., str], tmp_path: Path) -> str:
    """A dashboard of the sample recording with a folder for notes."""
    return dashboard(notes_dir=str(tmp_path / "notes"), bundle_dir=str(tmp_path / "bundles"))


def keep(page: Page, base: str, title: str, notes: str, query: str = "") -> str:
    """Keeps the window on the screen; the address of the incident."""
    page.goto(f"{base}/incidents?{query}")
    page.get_by_role("button", name="Keep this window").click()
    page.get_by_label("Title").fill(title)
    page.get_by_label("Notes (Markdown)").fill(notes)
    page.get_by_role("button", name="Keep", exact=True).click()
    page.locator(".incident .headline", has_text=title).wait_for()
    return page.url


def test_what_was_typed_is_kept_though_the_window_has_another_headline_by_then(
    backfill: Callable[[str], str],
    dashboard: Callable[..., str],
    person: Callable[..., Page],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The field of the title begins with the headline: when that changes, what a person has typed meanwhile must not go with it."""
    clock = Clock(tmp_path, monkeypatch)
    base = dashboard(prometheus_url=backfill(ahead(0.0)), notes_dir=str(tmp_path / "notes"))
    page, typed = person(), "Decode pool short of KV space after the rollout of 20:10, seen by the on-call of the night shift " * 2
    page.goto(f"{base}/incidents?from=now-30m&to=now")
    page.get_by_role("button", name="Keep this window").click()
    expect(page.get_by_label("Title")).not_to_have_value("")
    begun = page.get_by_label("Title").input_value()
    page.get_by_label("Title").fill(typed.strip())
    clock.move(7200)  # the samples have ended: the headline of the last half hour is another one
    page.get_by_role("button", name="Keep", exact=True).click()  # without having left the field
    expect(page.locator(".incident .headline")).to_have_text(typed.strip())
    assert begun not in page.locator(".then").inner_text()  # of the window as it was kept


def edit(page: Page, text: str) -> None:
    page.get_by_role("button", name="Edit").click()
    page.get_by_label("Notes (Markdown)").fill(text)


def test_without_the_setting_the_page_says_how_to_switch_it_on(sample: str, person: Callable[..., Page]) -> None:
    page = person()
    page.goto(f"{sample}/incidents")
    assert "OBS_NOTES_DIR" in page.locator(".off").inner_text()
    assert page.get_by_role("button", name="Keep this window").count() == 0
    page.goto(f"{sample}/incidents?incident=../../etc/passwd")
    assert "cannot be the id of an incident" in page.locator(".notes").inner_text()


def test_notes_are_shown_as_markdown_that_can_neither_run_nor_call_anywhere(kept: str, person: Callable[..., Page]) -> None:
    page = person(width=390)  # its fixture fails the test on any request to another host
    hostile = "**bold** <img src=http://evil.example/a.png> ![x](http://evil.example/b.png)\n\n"
    hostile += "[go](javascript:alert(1)) <script>alert(2)</script>"
    keep(page, kept, "<b>KV</b> pressure", hostile)
    prose = page.locator(".prose")
    assert prose.locator("strong").inner_text() == "bold"
    assert prose.locator("img, script").count() == 0
    assert prose.locator("a").evaluate_all("links => links.map(a => a.getAttribute('href'))") == ["http://evil.example/b.png"]
    assert page.locator(".incident .headline").inner_text() == "<b>KV</b> pressure"
    assert "Latency rises without errors: applies" in page.locator(".then").inner_text()
    assert not too_wide(page)


def test_two_people_who_edit_at_once_see_both_texts_and_lose_none(kept: str, person: Callable[..., Page]) -> None:
    ana = person()
    address = keep(ana, kept, "KV pressure", "first text")
    bob = person()
    bob.goto(address)
    bob.locator(".prose").wait_for()
    edit(ana, "what Ana wrote")
    edit(bob, "what Bob wrote")
    ana.get_by_role("button", name="Save", exact=True).click()
    expect(ana.locator(".prose")).to_have_text("what Ana wrote")
    bob.get_by_role("button", name="Save", exact=True).click()
    theirs = bob.locator(".st-key-theirs")
    expect(theirs).to_contain_text("what Ana wrote")
    assert bob.get_by_label("Notes (Markdown)").input_value() == "what Bob wrote"
    bob.get_by_label("Notes (Markdown)").fill("what Ana wrote\n\nwhat Bob wrote")
    bob.get_by_role("button", name="Save my text as it stands").click()
    expect(bob.locator(".prose p")).to_have_text(["what Ana wrote", "what Bob wrote"])
    bob.get_by_text("Every text that was saved: 4").click()
    expect(bob.locator("[data-testid=stExpander] code")).to_have_text(
        ["what Ana wrote\n\nwhat Bob wrote", "what Bob wrote", "what Ana wrote", "first text"]
    )

    bob.goto(f"{kept}/incidents")
    expect(bob.locator(".kept-line .title")).to_have_text(["KV pressure"])
    bob.get_by_label("Search").fill("nothing like it")
    bob.get_by_label("Search").press("Enter")
    expect(bob.locator(".nothing")).to_have_text("No incident has all of these words.")
    bob.get_by_label("Search").fill("BOB latency")
    bob.get_by_label("Search").press("Enter")
    bob.locator(".kept-line").click()
    bob.get_by_role("button", name="Delete …").click()
    bob.get_by_role("button", name="Delete this incident").click()
    expect(bob.locator(".nothing")).to_have_text("No incident was kept yet.")
    ana.reload()
    expect(ana.locator(".off")).to_contain_text("This incident was deleted.")
    ana.get_by_role("button", name="Take back").click()
    expect(ana.locator(".prose p")).to_have_text(["what Ana wrote", "what Bob wrote"])


def test_an_incident_opens_with_its_figures_after_prometheus_has_forgotten_it(
    lab_url: str, dashboard: Callable[..., str], person: Callable[..., Page], tmp_path: Path
) -> None:
    folder = str(tmp_path / "notes")
    page = person()
    address = keep(page, dashboard(prometheus_url=lab_url, notes_dir=folder), "Busy night", "to be read later", KV)
    later = dashboard(prometheus_url="http://127.0.0.1:1", notes_dir=folder)
    page.goto(f"{later}/incidents?incident={address.rpartition('incident=')[2][:16]}")  # the id alone
    page.locator(".prose", has_text="to be read later").wait_for()
    assert "bundle=" in page.url
    page.get_by_role("link", name="Open from the kept readings").click()
    page.locator("section.row.applies").first.wait_for()
    assert dict(states(page))["Latency rises without errors"] == "applies"
    kv = page.locator("section.row.primary .line", has_text="KV cache use").first.locator(".figure").inner_text()
    assert kv.replace("\u00a0", " ") == "100 %"
    page.goto(f"{later}/?{KV}")
    page.locator(".obs .failed").wait_for()  # Prometheus itself tells nothing any more
