"""The planner's inputs in a link: what is written is read back, what means nothing there stays as preset and is said."""

import json

import pytest
from tests.arrays import by_hand, course, facts

from obs import gpu_live, links
from obs.errors import CallError
from obs.language import render
from obs.memory.choice import FILE, GIVEN, LONGEST, MEASURED, Choice, packed, read, unpacked, written
from obs.memory.config_json import from_config
from obs.memory.plan import plan
from obs.window import Window

PRESET = Choice("llama-3.1-70b", "h100-80gb", tensor=4, longest=131_072, at_once=64)
CONFIG = {
    "model_type": "llama", "num_hidden_layers": 32, "hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32,
    "num_key_value_heads": 8, "vocab_size": 128256, "max_position_embeddings": 8192, "torch_dtype": "bfloat16",
    "rope_scaling": {"factor": 8.0, "type": "llama3"}, "architectures": ["LlamaForCausalLM"], "eos_token_id": [1, 2, 3],
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("model~gpt-9000", "model"),
        ("gpu~h100-80gb~share~7", "share"),
        ("share~nan", "share"),
        ("tp~999", "tp"),
        ("tp~four", "tp"),
        ("kv~int2", "kv"),
        ("len~0", "len"),
        ("config~AAAA", "config"),
        ("made_up~1", "made_up"),
        ("tensor~2", "tensor"),  # its name in a link is tp
    ],
)
def test_what_means_nothing_in_a_plan_stays_as_preset_and_is_said(text, name):
    found, notes = read(text, PRESET)
    assert found == PRESET
    assert [render(note).partition(" in the plan")[0] for note in notes] == [name]


@pytest.mark.parametrize("text", ["", "model", "~~~", "~", "~~model~"])
def test_a_plan_without_words_is_the_preset(text):
    assert read(text, PRESET)[0] == PRESET


def test_a_bomb_in_a_link_does_not_unpack():
    assert unpacked(packed_by_hand("x" * 10_000_000)) == ""


def packed_by_hand(text):
    import base64
    import zlib

    return base64.urlsafe_b64encode(zlib.compress(text.encode(), 9)).decode().rstrip("=")


def test_a_config_too_long_for_a_link_is_left_out_of_it_and_the_model_stays_named():
    widths = {
        **CONFIG,
        "layer_types": [("full_attention" if n * n % 7 < 3 else "sliding_attention") for n in range(32)],
        "sliding_window": 8,
    }
    assert 0 < len(packed(json.dumps(widths))) < LONGEST
    assert packed("{}") == packed("no JSON") == ""
    broken = Choice(FILE, "h100-80gb", config="no JSON")
    assert read(written(broken), PRESET)[0] == Choice(FILE, "h100-80gb")


@pytest.mark.parametrize(
    "choice",
    [
        PRESET,
        Choice("gpt-oss-20b", MEASURED, weights="mxfp4", kv="fp8", share=0.955, tensor=2, pipeline=3, tokens=2048, seqs=17, longest=100),
        Choice("deepseek-v3", GIVEN, gib=141.2, runs=True),
    ],
)
def test_what_is_written_is_read_back_and_passes_through_a_link_unchanged(choice):
    text = written(choice)
    assert read(text, Choice("phi-4", "a100-80gb")) == (choice, ())
    view = links.parse_url(links.url("https://obs.example", links.View(page="memory", plan=text)))
    assert view.plan == text
    assert "%" not in links.url("", view)  # nothing that a chat would write otherwise
    assert links.pinned(view, Window(0.0, 60.0)).plan == text
    assert links.pinned(links.View(page="kv", plan=text), Window(0.0, 60.0)).plan is None  # no other page shows it


def test_a_pasted_config_travels_with_the_fields_that_decide_its_shape():
    whole = {"text_config": CONFIG, "vision_config": {"depth": 27, "layers": list(range(500))}, "model_type": "llava"}
    choice = Choice(FILE, "h100-80gb", config=json.dumps(whole))
    got = read(written(choice), PRESET)[0]
    assert got.shape == from_config(whole)
    assert set(json.loads(got.config)) & {"rope_scaling", "eos_token_id", "architectures"} == set()
    assert any("vision" in render(note) for note in got.shape.notes)  # what is not counted is said there too
    assert len(written(choice)) < 500


# ---------------------------------------------------------------- what the window presets


def test_another_model_and_another_card_bring_their_own_presets():
    seen = facts(by_hand(240, requests_running=course(240, (0, 7.0))))
    first = gpu_live.preset(seen, None)
    assert (first.model, first.tensor, first.longest, first.at_once, first.seqs) == (gpu_live.EXAMPLE, 4, 131_072, 7, 1024)
    small = gpu_live.of_model(Choice("llama-3.1-8b", "h100-80gb", tensor=8))
    assert (small.tensor, small.longest) == (1, 131_072)
    assert gpu_live.of_card(Choice("phi-4", "l4"), None).tokens == 2048


def test_a_plan_for_a_measured_gpu_says_where_none_is_measured():
    seen = facts(by_hand(240))
    with pytest.raises(CallError) as error:
        plan(gpu_live.setup(Choice("phi-4", MEASURED), seen, None))
    assert "no exporter shows it in this window" in render(error.value.says)
