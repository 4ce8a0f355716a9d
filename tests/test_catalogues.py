"""Both catalogues hold every sentence of the project, whole, with the same holes; nothing English is left in the Spanish one."""

import re
import string

import pytest

import catalogues

KEYS = catalogues.extract()
# What is the same in both languages: names, units, and words that they share. Texts without a word of three letters are not looked at.
SAME = {"no", "neutral", "prefill", "{figure} token", "{figure} tokens", "{figure} tokens/s"}
ENGLISH = re.compile(
    r"\b(the|and|with|which|since|before|after|threshold|requests?|such|have|was|were|choose|give|of|is|are|not|it)\b", re.I
)


def holes(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


def entries(lang: str) -> dict[str, tuple[str, ...]]:
    found = {}
    for message in catalogues.load(lang):
        if message.id:
            key = message.id if isinstance(message.id, str) else message.id[0]
            found[key] = (message.string,) if isinstance(message.string, str) else tuple(message.string)
    return found


def test_the_sentences_were_found():
    assert len(KEYS) > 100
    assert "KV cache use" in KEYS


@pytest.mark.parametrize("lang", catalogues.LANGUAGES)
def test_every_sentence_is_in_the_catalogue_and_nothing_else(lang):
    """When this fails: `make catalogues`, then translate what it lists."""
    firsts = {key if isinstance(key, str) else key[0] for key in KEYS}
    assert sorted(firsts - set(entries(lang))) == []
    assert sorted(set(entries(lang)) - firsts) == []


@pytest.mark.parametrize("lang", catalogues.LANGUAGES)
def test_every_sentence_is_translated_and_certain(lang):
    assert sorted(key for key, texts in entries(lang).items() if not all(texts)) == []
    assert [message.id for message in catalogues.load(lang) if message.id and message.fuzzy] == []


@pytest.mark.parametrize("lang", catalogues.LANGUAGES)
def test_a_translation_has_the_holes_of_its_sentence(lang):
    known = entries(lang)
    wrong = []
    for key in KEYS:
        originals = (key,) if isinstance(key, str) else key
        allowed = set().union(*map(holes, originals))
        for text in known.get(originals[0], ()):
            needed = set.intersection(*map(holes, originals))
            if text and not needed <= holes(text) <= allowed:
                wrong.append((originals[0], text))
    assert wrong == []


def _last(text: str) -> str:
    return text[-1:] if text[-1:] in ".:;,!?…" else ""


def test_a_translation_ends_as_its_sentence_does():
    """Sentences are put together: one that ends with a stop of its own gets two, one without gets none."""
    spanish = entries("es")
    originals = {key if isinstance(key, str) else key[0]: (key,) if isinstance(key, str) else key for key in KEYS}
    wrong = [
        (original, text)
        for first, forms in originals.items()
        for original, text in zip(forms, spanish.get(first, ()), strict=False)
        if text and _last(text) != _last(original)
    ]
    assert wrong == []


def test_the_english_catalogue_says_what_the_code_says():
    assert {key: texts[0] for key, texts in entries("en").items() if texts[0] != key} == {}


def test_nothing_english_is_left_in_the_spanish_catalogue():
    left = {}
    for key, texts in entries("es").items():
        for text in texts:
            words = re.sub(r"\{\w+\}|«[^»]*»", "", text)  # holes, and what is quoted from elsewhere
            if key not in SAME and re.search("[a-z]{3}", words) and (text == key or ENGLISH.search(words)):
                left[key] = text
    assert left == {}


def test_a_sentence_that_is_no_literal_is_refused(tmp_path):
    (tmp_path / "app.py").write_text('say("Fine {a}", a=say("Inner"))\nsay_n("one", "many", n)\nsay(text)\n')
    assert list(catalogues.sentences(tmp_path / "app.py")) == [(1, "Fine {a}"), (2, ("one", "many")), (3, None), (1, "Inner")]
    with pytest.raises(SystemExit, match=r"app\.py:3"):
        catalogues.extract(tmp_path)
