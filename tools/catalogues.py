"""Finds every translatable sentence and brings the catalogues up to date (`make catalogues`).

Read from the syntax tree rather than by Babel's token scanner, so that calls inside calls are found, and a sentence that is no
literal is an error instead of a hole in the translation. No line numbers and no dates go into the files: branches merge.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from babel.messages import Catalog
from babel.messages.pofile import read_po, write_po

ROOT = Path(__file__).resolve().parent.parent
LANGUAGES = ("en", "es")
KEYWORDS = {"say": 1, "say_n": 2, "_": 1, "_n": 2}  # name -> how many of its first arguments are sentences
Key = str | tuple[str, str]


def sources(root: Path = ROOT) -> list[Path]:
    """Every file whose sentences a person may see."""
    return [root / "app.py", *sorted((root / "pages").glob("*.py")), *sorted((root / "src/obs").rglob("*.py"))]


def sentences(path: Path) -> Iterator[tuple[int, Key | None]]:
    """(line, sentence) of each translatable call; None where its argument is no literal."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"), str(path))):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if name not in KEYWORDS or not node.args:
            continue
        texts = [arg.value if isinstance(arg, ast.Constant) and isinstance(arg.value, str) else None for arg in node.args[: KEYWORDS[name]]]
        literal = [text for text in texts if text is not None]
        if len(literal) < KEYWORDS[name]:
            yield node.lineno, None
        else:
            yield node.lineno, literal[0] if len(literal) == 1 else (literal[0], literal[1])


def extract(root: Path = ROOT) -> set[Key]:
    """Every sentence of the project; exits where one is no literal."""
    found: set[Key] = set()
    for path in sources(root):
        if not path.exists():
            continue
        for line, key in sentences(path):
            if key is None:
                sys.exit(f"{path.relative_to(root)}:{line}: the sentence must be a literal, or it cannot be translated")
            found.add(key)
    for path in sorted((root / "src/obs").rglob("*.toml")):  # what a vocabulary says of its system's gaps
        told = tomllib.loads(path.read_text("utf-8"))
        found |= set(told.get("gaps", {}).values()) - {""}
        found |= {naming[word] for naming in told.get("signals", {}).values() for word in ("lacks", "without") if naming.get(word)}
    return found


def path_of(lang: str) -> Path:
    """Where a language's catalogue lies."""
    return ROOT / "src/obs/locale" / lang / "LC_MESSAGES/obs.po"


def load(lang: str) -> Catalog:
    """A language's catalogue, empty where there is none yet."""
    path = path_of(lang)
    if not path.exists():
        return Catalog(locale=lang, domain="obs")
    with path.open("rb") as file:
        return read_po(file, locale=lang, domain="obs")


def updated(lang: str, keys: set[Key]) -> Catalog:
    """The catalogue with exactly these sentences: translations kept, new ones empty (in English: as they are)."""
    old = load(lang)
    fixed = datetime(2026, 1, 1, tzinfo=UTC)
    new = Catalog(locale=lang, domain="obs", project="obs", charset="utf-8", fuzzy=False, creation_date=fixed, revision_date=fixed)
    new.mime_headers = [("Plural-Forms", "nplurals=2; plural=(n != 1);")]  # CLDR's third Spanish form is for whole millions only
    new.header_comment = f"# The sentences of obs in the language `{lang}`. Kept by `make catalogues`."
    for key in sorted(keys, key=str):
        message = old.get(key if isinstance(key, str) else key[0])
        text = message.string if message is not None and _filled(message.string) else None
        if isinstance(key, tuple) != isinstance(text, tuple | list):
            text = None
        new.add(key, text if text is not None else (key if lang == "en" else None))
    return new


def _filled(text: object) -> bool:
    return bool(text) if isinstance(text, str) else isinstance(text, tuple | list) and all(text)


def main() -> int:
    """Writes the catalogues and says what is left to translate."""
    keys = extract()
    for lang in LANGUAGES:
        catalogue = updated(lang, keys)
        path_of(lang).parent.mkdir(parents=True, exist_ok=True)
        with path_of(lang).open("wb") as file:
            write_po(file, catalogue, width=0, sort_output=True, no_location=True)
        empty = [message.id for message in sorted(catalogue) if message.id and not _filled(message.string)]
        sys.stdout.write(f"{lang}: {len(keys)} sentences, {len(empty)} to translate\n")
        for key in empty:
            sys.stdout.write(f"    {key}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
