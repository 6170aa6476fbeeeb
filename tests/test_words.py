"""The words that users see: plain English, in strings of the program and in Markdown.

Each listed word has a plain replacement: "reported" for "told", "next to" for "beside", "not a" for "is no".
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
LISTED = re.compile(
    r"\b(told|tells of|said|beside|sound runs?|as of a|of which|that which|one and the same|is no [a-z]+|at hand|"
    r"speaks? (?:for|against|most)|stands? at|in plain sight|nothing stands out)\b",
    re.IGNORECASE,
)
MAX_WORDS_IN_SENTENCE = 25
MIN_PROSE_CHARACTERS = 30
"""A shorter string is a label or a fragment."""
WORD_LIST = "src/mldebug_mcp/knowledge/search_index.py"
"""Lists of words that questions hold: they are data, and no sentences."""
PATTERNS = {
    "src/mldebug_mcp/checks/run/end_of_run.py": 1,
    "src/mldebug_mcp/judge/statements.py": 1,
    "src/mldebug_mcp/knowledge/errors.py": 1,
    "src/mldebug_mcp/report/diagnosis_html.py": 1,
    WORD_LIST: 2,
}
"""Long strings that are not sentences, by file: regular expressions over messages, tags of a page, lists of words."""


def strings() -> Iterator[tuple[str, int, str]]:
    for file in sorted((ROOT / "src" / "mldebug_mcp").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                text = node.value
                if " " in text and len(text) > MIN_PROSE_CHARACTERS:
                    yield file.relative_to(ROOT).as_posix(), node.lineno, text


def long_sentences(text: str) -> list[str]:
    sentences = re.split(r"(?<=[.:;!?])\s+", text)
    return [sentence for sentence in sentences if len(sentence.split()) > MAX_WORDS_IN_SENTENCE]


def without_quotes(text: str) -> str:
    """Return Markdown without code, tables and quotes of other people."""
    text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    text = re.sub(r"^\s*(?:>|\|).*$", "", text, flags=re.MULTILINE)
    return re.sub(r"`[^`\n]*`|\"[^\"\n]*\"|“[^”]*”", "", text)


def test_strings_of_the_program_hold_no_listed_word() -> None:
    found = [
        f"{file}:{line}: {hit.group(0)}"
        for file, line, text in strings()
        if file != WORD_LIST
        for hit in LISTED.finditer(text)
    ]
    assert not found, f"write it in other words (docstrings too), as the first lines of this file show: {found}"


def test_sentences_of_the_program_have_at_most_25_words() -> None:
    found: dict[str, list[str]] = {}
    for file, line, text in strings():
        for sentence in long_sentences(text):
            found.setdefault(file, []).append(f"{file}:{line}: {sentence[:80]}")
    too_many = [entry for file, entries in found.items() if len(entries) > PATTERNS.get(file, 0) for entry in entries]
    assert not too_many


def test_markdown_holds_no_listed_word() -> None:
    files = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "references" / "causes.md"]
    found = [
        f"{file.relative_to(ROOT)}: {hit.group(0)}"
        for file in files
        for hit in LISTED.finditer(without_quotes(file.read_text()))
    ]
    assert not found, f"write it in other words, as the first lines of this file show: {found}"


MAX_FILES_PER_CONSTANT = 5
INTERFACE = {"NAME": "what each module of a log or batch format declares for the protocols `Reader` and `Format`"}
"""Names of constants that many files share, with the reason."""


def test_no_constant_has_the_same_name_in_more_than_5_files() -> None:
    files: dict[str, set[str]] = {}
    for file in (ROOT / "src" / "mldebug_mcp").rglob("*.py"):
        for node in ast.parse(file.read_text()).body:
            if not isinstance(node, ast.Assign | ast.AnnAssign):
                continue
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for name in (inner for target in targets for inner in ast.walk(target) if isinstance(inner, ast.Name)):
                if name.id.isupper():
                    files.setdefault(name.id, set()).add(file.relative_to(ROOT).as_posix())
    shared = {name: sorted(found) for name, found in files.items() if len(found) > MAX_FILES_PER_CONSTANT}
    assert shared.keys() <= INTERFACE.keys(), shared
