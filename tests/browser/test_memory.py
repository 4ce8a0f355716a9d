"""The GPU memory page in a browser: what is measured, what is computed, and a planner that takes whatever is pasted."""

from __future__ import annotations

import json
from collections.abc import Callable

from playwright.sync_api import Page
from tests.browser.conftest import KV, SCRIPT, _until_now, too_wide
from tests.browser.test_load_pages import figures, words
from tests.recordings import Recording

CONFIG = {
    "model_type": "llama", "num_hidden_layers": 32, "hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32,
    "num_key_value_heads": 8, "vocab_size": 128256, "max_position_embeddings": 8192, "torch_dtype": "bfloat16",
}  # fmt: skip


def opened(page: Page, url: str) -> Page:
    page.goto(url)
    page.wait_for_selector(".obs .said .headline")
    page.wait_for_selector(".obs .plan")
    styled = "getComputedStyle(document.querySelector('.obs .plan .label')).textTransform === 'uppercase'"
    page.wait_for_function(styled)
    return page


def choose(page: Page, label: str, option: str) -> None:
    """Takes an option of a list by its first letters."""
    field = page.get_by_label(label, exact=True)
    field.click()
    field.fill(option)
    page.get_by_role("option", name=option, exact=True).click()


def holds(page: Page, label: str, figure: str) -> None:
    """Waits until a field has a figure: it comes a moment after the field."""
    page.wait_for_function(f"document.querySelector('input[aria-label={label}]')?.value === '{figure}'")


def items(page: Page) -> dict[str, str]:
    """The plan's figures by name."""
    found = page.eval_on_selector_all(
        ".plan .item", "all => all.map(i => [i.querySelector('.label').textContent, i.querySelector('.amount').textContent])"
    )
    return {name: amount.replace("\u00a0", " ") for name, amount in found}


def lengths(page: Page) -> list[list[str]]:
    return page.eval_on_selector_all(
        ".table.lengths tbody tr", "rows => rows.map(r => [...r.children].map(c => c.innerText.replace(/\\u00a0/g, ' ')))"
    )  # type: ignore[no-any-return]


def test_without_a_gpu_exporter_the_planner_still_counts_and_says_what_is_missing(sample: str, person: Callable[..., Page]) -> None:
    page = opened(person(), f"{sample}/memory?{KV}")
    assert words(page, ".said .headline") == "Nobody can tell how full the GPU is: no exporter shows its memory."
    assert "the DCGM exporter would give them" in words(page, ".advice")
    assert figures(page)["KV cache capacity"] == "25,600 tokens"
    assert items(page)["Weights, by the rule of thumb"] == "140 GB (130 GiB)"  # a 70B model in FP16
    assert [line[0] for line in lengths(page)] == ["p50", "p95", "max ≤"]
    choose(page, "Model", "another: its config.json")
    page.wait_for_function("document.querySelector('.fits-line.wrong')?.innerText.startsWith('Nothing was pasted')")
    paste = page.get_by_label("Paste the model's config.json")
    for text, answer in (
        ('{"model_type": ', "This is not JSON: line 1, column 16."),
        (SCRIPT, "This is not JSON: line 1, column 1."),
        ("[" * 100_000, "This JSON cannot be read"),
        ('{"num_hidden_layers": -1}', "num_hidden_layers in this config.json is -1, and must lie between 1 and"),
        ("{}", "This config.json has no num_hidden_layers"),
    ):
        paste.fill(text)
        paste.press("Control+Enter")
        page.wait_for_function(f"document.querySelector('.fits-line.wrong')?.innerText.startsWith({json.dumps(answer)})")
    paste.fill(json.dumps(CONFIG))
    paste.press("Control+Enter")
    page.wait_for_selector(".obs .plan")
    assert items(page)["KV cache of a token"] == "131 kB (128 KiB)"
    assert page.title() != "owned"


def test_what_happened_stands_on_one_time_line_and_what_fills_the_gpu_has_its_origin(
    backfill: Callable[[str], str], dashboard: Callable[..., str], person: Callable[..., Page]
) -> None:
    recording = Recording(2400, scrape=30).vllm("a", model="meta-llama/Llama-3.1-70B-Instruct")
    pod = {"exported_namespace": "prod", "exported_pod": "a"}
    gpu = {"job": "dcgm", **pod, "gpu": "0", "Hostname": "n", "instance": "n:9400"}
    for name, value in (("USED", 73_728), ("FREE", 7_168), ("RESERVED", 1_024)):
        recording.put(f"DCGM_FI_DEV_FB_{name}", gpu, value)
    recording.put("DCGM_FI_DEV_XID_ERRORS", gpu, lambda age: 0 if age < 1800 else 79)
    recording.put("gpu_oom_events_total", pod, lambda age: 0 if age < 1500 else 2)
    cache = {"job": "vllm", "namespace": "prod", "pod": "a", "instance": "a:8000", "engine": "0", "kv_cache_size_tokens": "400000"}
    recording.put("vllm:cache_config_info", {**cache, "gpu_memory_utilization": "0.92"}, 1)
    base = dashboard(prometheus_url=backfill(_until_now(recording)))
    page = opened(person(), f"{base}/memory?from=now-30m")
    assert words(page, ".said .headline").startswith("The GPU ran out of memory 1 time, on a, first at ")
    assert "Raise gpu_memory_utilization only after you have confirmed" in words(page, ".advice")
    shown = figures(page)
    assert (shown["GPU memory used, fullest"], shown["GPU memory free, least"]) == ("90 %", "7 GiB")
    assert (shown["GPU errors (XID)"], shown["Host out-of-memory kills"]) == ("1", "–")
    lanes = page.eval_on_selector_all(".happened .lane-row .lane", "all => all.map(l => [l.className, l.children.length])")
    assert lanes == [["lane", 1], ["lane unjudged", 0], ["lane", 1], ["lane", 0]]
    assert "XID 79: the GPU has fallen off the bus" in words(page, ".kinds")
    parts = page.eval_on_selector_all(
        ".st-key-panel-split .parts-table tbody tr", "rows => rows.map(r => [...r.children].slice(0, 3).map(c => c.innerText.trim()))"
    )
    assert [[cell.replace("\u00a0", " ") for cell in line] for line in parts] == [
        ["Weights", "35.3 GB (32.9 GiB)", "computed"],  # Llama 3.1 70B by its name, on one of four GPUs
        ["KV cache", "32.8 GB (30.5 GiB)", "computed"],  # 400,000 tokens of 80 KiB
        ["Activations, context and what else", "9.24 GB (8.6 GiB)", "computed"],
        ["Free", "7.52 GB (7 GiB)", "measured"],
    ]
    assert lengths(page)[0][:3] == ["max_model_len", "131,072", "42.9 GB (40 GiB)"]  # no lengths were seen
    holds(page, "gpu_memory_utilization", "0.92")
    choose(page, "Model", "DeepSeek V3")
    page.wait_for_function("document.querySelector('.plan .item .amount')?.innerText.startsWith('6')")
    page.wait_for_function("document.querySelectorAll('input[aria-label=max_model_len]').length === 1")  # of this model, 163,840
    longest = page.get_by_label("max_model_len")
    longest.fill("131072")
    longest.press("Enter")
    page.wait_for_function("document.querySelector('.table.lengths tbody')?.innerText.includes('131,072')")
    assert lengths(page)[0][2] == "9.21 GB (8.58 GiB)"


def test_a_plan_is_a_link_and_is_held_against_the_engine_only_where_it_is_of_the_model_that_runs(
    sample: str, person: Callable[..., Page]
) -> None:
    page = opened(person(), f"{sample}/memory?{KV}")
    assert "Not compared: tiny-llama runs here, and this plan is for Llama 3.1 70B." in page.inner_text(".st-key-panel-planner")
    assert "tiny-llama is none of the listed models" in page.inner_text(".st-key-panel-planner")
    choose(page, "GPU", "NVIDIA H200 141GB")
    page.wait_for_function("location.search.includes('h200')")
    choose(page, "Model", "another: its config.json")
    paste = page.get_by_label("Paste the model's config.json")
    paste.fill(json.dumps(CONFIG))
    paste.press("Control+Enter")
    page.wait_for_function("location.search.includes('config~')")
    seqs = page.get_by_label("max_num_seqs")
    seqs.fill("99")
    seqs.press("Enter")
    page.wait_for_function("location.search.includes('~seqs~99~')")
    page.get_by_text("This plan is for the model that runs here, under another name").click()
    page.wait_for_function("location.search.includes('~runs~1')")
    page.wait_for_function("document.body.innerText.includes('The engine holds 25,600')")  # compared, and explained
    shown, fits = items(page), lengths(page)
    assert shown["KV cache of a token"] == "131 kB (128 KiB)"
    assert "The difference is" in page.inner_text(".st-key-panel-planner")
    assert "num_gpu_blocks_override fixes the pool at 800 blocks, however much memory is free." in page.inner_text(".st-key-panel-planner")

    other = opened(person(), page.url)  # another person, with the link alone
    other.wait_for_function("document.body.innerText.includes('The engine holds 25,600')")
    assert items(other) == shown
    assert lengths(other) == fits
    holds(other, "max_num_seqs", "99")
    other.get_by_role("link", name="KV cache", exact=True).click()
    other.wait_for_function("location.pathname === '/kv'")
    other.get_by_role("link", name="GPU memory", exact=True).click()
    other.wait_for_selector(".obs .plan")
    assert items(other) == shown


def test_the_page_fits_390_pixels_in_spanish(sample: str, person: Callable[..., Page]) -> None:
    page = opened(person(width=390, locale="es-ES"), f"{sample}/memory?{KV}")
    assert words(page, ".said .headline").startswith("Nadie puede saber cuánto ocupa la GPU")
    assert "calculado" in words(page, ".plan")
    assert too_wide(page) == []
