"""The row of pages: on one line whatever their number, the open page in view, and nothing under the menu."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page
from tests.browser.conftest import KV, too_wide

ROW, HERE = ".st-key-top", ".st-key-top [class*='-here']"


def test_on_a_phone_the_open_page_is_in_view_and_the_menu_stands_free(sample: str, person: Callable[..., Page]) -> None:
    page = person(width=390, locale="es-ES")
    page.goto(f"{sample}/data?{KV}")
    page.wait_for_function(
        f"""() => {{
          const [row, here, menu] = ["{ROW}", "{HERE}", "[data-testid=stMainMenu] button"]
            .map(each => document.querySelector(each)?.getBoundingClientRect());
          return row && here && menu && here.left > row.left + 40 && here.right < row.right - 10
            && row.right <= menu.left && row.height < 50;  // one line
        }}"""
    )
    assert too_wide(page) == []
    page.get_by_role("link", name="Diagnóstico").focus()  # a link that is reached by the keyboard comes into view
    assert page.evaluate(f"document.querySelector('{ROW}').scrollLeft") < 60
