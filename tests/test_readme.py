from __future__ import annotations

import importlib.util
import re
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

import mldebug_mcp

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))


@pytest.fixture(scope="module")
def update_readme() -> ModuleType:
    spec = importlib.util.spec_from_file_location("update_readme", ROOT / "docs" / "update_readme.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_readme_shows_what_the_commands_print(update_readme: ModuleType) -> None:
    assert update_readme.BLOCK.search(README)
    assert update_readme.filled(README) == README, "run: python docs/update_readme.py"


@pytest.mark.parametrize("name", ["accuracy", "commands"])
def test_a_page_shows_what_the_commands_print_and_what_was_measured(update_readme: ModuleType, name: str) -> None:
    page = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
    assert update_readme.TABLE.search(page) or update_readme.BLOCK.search(page)
    assert update_readme.filled(page) == page, "run: python docs/update_readme.py"


def test_the_readme_names_every_extra_but_that_of_developers() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert {name for name in extras if f"`mldebug-mcp[{name}]`" not in README} <= {"dev"}


def test_the_python_of_the_readme_runs(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    code = re.search(r"```python\n(.*?)```", README, re.DOTALL)
    assert code is not None
    exec(compile(code[1], "README.md", "exec"), {})  # noqa: S102 - our own example
    assert "loss_spike" in capsys.readouterr().out


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))], ids=lambda page: page.name
)
def test_every_local_link_of_a_page_leads_somewhere(page: Path) -> None:
    links = re.findall(r"\]\((?!http)([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_the_readme_is_one_sitting() -> None:
    assert len(README.encode()) <= 12_000


@pytest.mark.parametrize(("name", "least"), [("CONTRIBUTING.md", 15), ("docs/adding.md", 20)])
def test_every_place_that_contributors_are_sent_to_exists(name: str, least: int) -> None:
    page = (ROOT / name).read_text(encoding="utf-8")
    named = re.findall(r"`((?:src|tests|benchmarks|evidence|docs)\b[\w./]*)`|\b(tests/[\w/]+\.py)\b", page)
    places = [ROOT / (quoted or plain) for quoted, plain in named]
    places += [(ROOT / name).parent / link for link in re.findall(r"\]\(([^)#]+)", page)]
    assert len(places) > least
    assert [place for place in places if not place.exists()] == []


def test_everything_that_the_package_offers_exists() -> None:
    assert set(mldebug_mcp.__all__) >= {"diagnose_run", "search_folklore", "explain", "Diagnosis", "MLDebugError"}
    assert all(hasattr(mldebug_mcp, name) for name in mldebug_mcp.__all__)
