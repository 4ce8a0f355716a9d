"""Every word on a page, the charts' axes too, stands out from its ground as WCAG 2.2 AA asks: 4.5 to 1, large type 3 to 1."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page
from tests.browser.conftest import KV
from tests.browser.test_load_pages import opened

# Of each visible text the colour over the grounds behind it, as the standard computes it; what is below, with its ratio.
FAINT = """() => {
  const parts = text => { const found = text.match(/[\\d.]+/g).map(Number); return found.length < 4 ? [...found, 1] : found };
  const light = rgb => rgb.map(v => v / 255).map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
  const over = (top, ground) => [0, 1, 2].map(i => top[i] * top[3] + ground[i] * (1 - top[3]));
  const ground = element => {
    const found = [];
    for (let e = element; e; e = e.parentElement) {
      const colour = parts(getComputedStyle(e).backgroundColor);
      if (colour[3] > 0) found.push(colour);
      if (colour[3] >= 1) break;
    }
    return found.reverse().reduce((below, colour) => over(colour, below), [255, 255, 255]);
  };
  const out = [], texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const words = texts.currentNode.textContent.trim(), e = texts.currentNode.parentElement;
    if (!words || e.closest('[disabled], script, style, noscript')) continue;
    if (!e.checkVisibility({opacityProperty: true, visibilityProperty: true})) continue;
    const style = getComputedStyle(e), svg = e.closest('svg'), below = ground(svg || e);
    const [a, b] = [light(over(parts(svg ? style.fill : style.color), below)), light(below)];
    const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05), size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
    if (ratio < (large ? 3 : 4.5)) out.push([words, ratio.toFixed(2)]);
  }
  return out;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_word_is_readable_in_light_and_dark(sample: str, person: Callable[..., Page], scheme: str) -> None:
    page = opened(person(color_scheme=scheme), f"{sample}/kv?{KV}")
    page.locator("svg.marks .role-axis-label text").nth(40).wait_for(state="attached")  # several charts are drawn
    assert page.evaluate(FAINT) == []
