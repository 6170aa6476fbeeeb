"""The words of metrics and settings: each is in use somewhere, and each means what the data file says."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from mldebug_mcp.logs.names import lexicon
from mldebug_mcp.logs.names.words import words_in

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
SHARED = ROOT.parent / "shared"
SEEN, UNSEEN = HERE / "words_seen.txt", HERE / "words_unseen.txt"
"""Words that only logs outside of the repository hold, and words that are kept though no log at hand holds them."""
LOGS = ("fault_runs/runs", "fault_runs_2/runs", "real_logs/files", "real_logs_2/files", "cases")
LARGEST = 30_000_000

FILE = json.loads(Path(lexicon.__file__).with_name("words.json").read_text(encoding="utf-8"))
WORD = re.compile(rb"[A-Za-z0-9\x80-\xff]{1,60}")
PART = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=\D)(?=\d)|(?<=\d)(?=\D)")


def plain(word: str) -> str:
    """Return a word in lower case without its accents."""
    return "".join(sign for sign in unicodedata.normalize("NFKD", word) if not unicodedata.combining(sign)).lower()


def entries() -> Iterator[str]:
    """Yield every word that the data file explains."""
    metrics, languages, settings = FILE["metrics"], FILE["languages"]["groups"], FILE["settings"]
    tables = [metrics["groups"][name] for name in ("phases", "statistics", "synonyms", "rates", "others")]
    for table in (metrics["lists"], settings["lists"], settings["synonyms"], *tables, *languages.values()):
        for words in table.values():
            yield from words.split()


def words_of_files(paths: Iterable[Path]) -> set[str]:
    """Return the words in files, whole and at their humps, whatever the format."""
    found: set[str] = set()
    for path in paths:
        if path.is_file() and path.stat().st_size <= LARGEST and path not in (SEEN, UNSEEN, Path(__file__)):
            for word in set(WORD.findall(path.read_bytes())):
                text = word.decode("utf-8", errors="ignore")
                found.update(map(plain, (text, *PART.split(text))))
    return found


def unused(words: set[str]) -> set[str]:
    """Return the entries that are none of these words; one of another alphabet may be a part of a word."""
    text = "\n".join(words)
    return {
        entry
        for entry in entries()
        if not ({plain(entry), f"{plain(entry)}s"} & words if entry.isascii() else plain(entry) in text)
    }


def listed(path: Path) -> set[str]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return {word for line in lines if not line.startswith("#") for word in line.split()}


@pytest.fixture(scope="module")
def words_of_tests() -> set[str]:
    """The words of the samples, the examples, and the tests of names and of restyled runs."""
    folders = (ROOT / "tests/logs", ROOT / "tests/restyle", ROOT / "examples")
    return words_of_files(path for folder in folders for path in folder.rglob("*") if "__pycache__" not in path.parts)


def test_each_word_is_in_a_test_a_sample_or_a_list_of_words_that_are_kept(words_of_tests: set[str]) -> None:
    assert not unused(words_of_tests) - listed(SEEN) - listed(UNSEEN)


def test_a_word_is_in_one_list_alone() -> None:
    assert not listed(SEEN) & listed(UNSEEN)


@pytest.mark.skipif(not SHARED.is_dir(), reason="needs the logs outside of the repository")
def test_the_words_that_are_listed_as_seen_stand_in_logs_and_the_others_do_not() -> None:
    words = words_of_files(path for folder in LOGS for path in (SHARED / folder).rglob("*"))
    missing = unused(words)
    assert not listed(SEEN) & missing
    assert listed(UNSEEN) <= missing


@pytest.mark.parametrize("source", ["metrics", "languages"])
@pytest.mark.parametrize("table", ["phases", "statistics", "synonyms"])
def test_each_word_means_what_the_file_says(source: str, table: str) -> None:
    groups = FILE[source]["groups"][table]
    meanings = {word: meaning.split() for meaning, words in groups.items() for word in words.split()}
    other = FILE["metrics"]["groups"]["synonyms"] if source == "languages" else {}
    own = {word for words in other.values() for word in words.split()} | set(
        FILE["metrics"]["lists"]["negated"].split()
    )
    assert {word: words_in(word) for word in meanings if word not in own} == {
        word: meaning for word, meaning in meanings.items() if word not in own
    }


def test_each_beginning_of_a_russian_word_means_what_the_file_says() -> None:
    stems = FILE["languages"]["groups"]["stems"]
    assert {stem: words_in(stem) for stems_of in stems.values() for stem in stems_of.split()} == {
        stem: [meaning] for meaning, stems_of in stems.items() for stem in stems_of.split()
    }
