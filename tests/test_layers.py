"""Who may import what and what a start may not load."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "mldebug_mcp"
MODULES = sorted(SOURCE.rglob("*.py"))

LAYERS = (
    {"core", "models"},
    {"knowledge", "logs", "batch", "probe", "memory", "capture", "clients", "recorder", "script"},
    {"rows"},
    {"checks"},
    {"judge"},
    {"report"},
    {"server", "cli", "api", "__main__"},
)
WITHOUT_CIRCLES = (
    "batch", "checks", "cli", "clients", "core", "judge", "knowledge", "memory", "models", "probe", "recorder",
    "report", "rows", "script", "server",
)  # fmt: skip
FLOORS_OF_LOGS = (
    {"numbers", "log_file", "line_prefixes", "columns"},
    {"names", "failures"},
    {"json_yaml", "settings"},
    {"files", "remote_files", "ranks", "run", "kinds"},
    {"checkpoints"},
    {"endings", "align", "attempts", "run_tables", "builder", "rank_recordings"},
    {"documents"},
    {"text"},
    {"formats"},
    {"merge"},
    {"read", "in_memory"},
    {"follow"},
)
"""The rooms of the logs in the order of their steps: what each is made of stands below it."""
OBSERVERS = {"logs", "batch", "probe", "memory"}
HEAVY = ("torch", "transformers", "pandas", "matplotlib", "numpy", "yaml", "markdown_it", "sqlite3", "pyarrow")


def area(module: str) -> str:
    """Return the top-level part of the package that a dotted name belongs to."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else ""


@dataclass(frozen=True)
class Source:
    """What the tests ask of a module, which is parsed once for all of them."""

    imports: tuple[ast.Import | ast.ImportFrom, ...]
    imports_at_start: tuple[ast.Import | ast.ImportFrom, ...]
    """Those outside functions and type-checking blocks."""
    constants: tuple[str, ...]
    prints: bool


@cache
def source(path: Path) -> Source:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = list(ast.walk(tree))
    targets = [target for node in tree.body if isinstance(node, ast.Assign) for target in node.targets]
    return Source(
        tuple(node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)),
        tuple(node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)),
        tuple(target.id for target in targets if isinstance(target, ast.Name) and target.id.isupper()),
        any(
            isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print" for node in nodes
        ),
    )


def imports(path: Path, *, at_start: bool = False) -> Iterator[str]:
    """Yield the modules that a file imports; with `at_start` only those outside functions and type-checking blocks."""
    for node in source(path).imports_at_start if at_start else source(path).imports:
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif node.module:
            yield node.module


def layer(part: str) -> int:
    return next(number for number, parts in enumerate(LAYERS) if part in parts)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_module_imports_only_from_its_own_layer_and_those_below(path: Path) -> None:
    own = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    if own == "__init__":
        return
    for module in imports(path):
        if module.startswith("mldebug_mcp.") and (other := area(module)) != own:
            assert layer(other) <= layer(own), f"{own} imports {module}"
            assert not (own in OBSERVERS and other in OBSERVERS), f"observers do not import each other: {module}"
            assert not {own, other} <= {"cli", "server"} or own == "cli", "the server does not import the command line"


def test_no_module_gives_one_constant_name_two_values() -> None:
    for path in MODULES:
        names = source(path).constants
        twice = {name for name in names if names.count(name) > 1}
        assert not twice, f"{path}: {', '.join(twice)}: the later value holds for the functions above it, too"


def _named(path: Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports_within(package: str) -> dict[str, set[str]]:
    """Return what each module of a package imports of it, for its types or inside of functions too."""
    paths = {_named(path): path for path in MODULES if f"{_named(path)}.".startswith(f"mldebug_mcp.{package}.")}
    found: dict[str, set[str]] = {}
    for module, path in paths.items():
        named = [
            (node.module, name.name)
            for node in source(path).imports
            if isinstance(node, ast.ImportFrom) and node.module
            for name in node.names
        ]
        names = {whole if (whole := f"{where}.{name}") in paths else where for where, name in named}
        found[module] = {name for name in names if name in paths and name != module}
    return found


@pytest.mark.parametrize("package", WITHOUT_CIRCLES)
def test_no_modules_of_a_package_import_each_other_in_a_circle(package: str) -> None:
    graph = _imports_within(package)
    while leaves := {module for module, used in graph.items() if not used & graph.keys()}:
        graph = {module: used for module, used in graph.items() if module not in leaves}
    assert not graph, f"in circles, or above one: {sorted(graph)}"


def test_only_the_server_imports_mcp_and_only_the_worker_imports_torch() -> None:
    for path in MODULES:
        where = path.relative_to(SOURCE).as_posix()
        roots = {module.split(".")[0] for module in imports(path)}
        if not where.startswith("server"):
            assert not roots & {"mcp", "mcp_types"}, where
        if not where.startswith(("probe/worker", "capture")):
            assert "torch" not in {module.split(".")[0] for module in imports(path, at_start=True)}, where


def test_only_the_command_line_prints() -> None:
    for path in MODULES:
        where = path.relative_to(SOURCE).as_posix()
        if where.startswith(("cli", "probe/worker")):
            continue
        assert not source(path).prints, where


def test_only_the_http_server_imports_what_serves_http() -> None:
    for path in MODULES:
        where = path.relative_to(SOURCE).as_posix()
        if where != "server/http.py":
            assert not {module.split(".")[0] for module in imports(path)} & {"uvicorn", "starlette", "h11"}, where


def test_a_start_over_stdio_loads_no_http_server_of_ours() -> None:
    code = "import sys, mldebug_mcp.server as s; s.make_server(); print([m for m in sys.modules if 'mldebug' in m])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "mldebug_mcp.server.tools" in done.stdout
    assert "server.http" not in done.stdout


@pytest.mark.parametrize("start", ["import mldebug_mcp", "import mldebug_mcp.server as s; s.make_server()"])
def test_a_start_loads_nothing_heavy(start: str) -> None:
    code = f"import sys; {start}; print(sorted(set({HEAVY!r}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def _modules_of(path: Path) -> set[str]:
    """Return what a file imports, type-checking blocks included, `from package import module` as the module."""
    found: set[str] = set()
    for node in source(path).imports:
        if isinstance(node, ast.ImportFrom) and node.module:
            found.update(f"{node.module}.{name.name}" for name in node.names)
            found.add(node.module)
    return found


def test_no_modules_of_the_logs_import_each_other_in_a_circle() -> None:
    files = {".".join(("mldebug_mcp", *path.relative_to(SOURCE).with_suffix("").parts)): path
             for path in (SOURCE / "logs").rglob("*.py") if path.name != "__init__.py"}  # fmt: skip
    left = {name: _modules_of(path) & files.keys() - {name} for name, path in files.items()}
    while leaves := {name for name, needed in left.items() if not needed}:
        left = {name: needed - leaves for name, needed in left.items() if name not in leaves}
    assert not left, f"in a circle, or above one: {sorted(left)}"


def test_a_step_of_reading_a_log_imports_only_from_its_own_floor_and_those_below() -> None:
    floors = {room: number for number, rooms in enumerate(FLOORS_OF_LOGS) for room in rooms}
    graph = _imports_within("logs")
    rooms = {module: module.removeprefix("mldebug_mcp.logs").strip(".").split(".")[0] for module in graph}
    assert floors.keys() == set(rooms.values()) - {""}
    wrong = [
        (module, other)
        for module, used in graph.items()
        for other in used
        if rooms[module] and (not rooms[other] or floors[rooms[other]] > floors[rooms[module]])
    ]
    assert not wrong, f"these import a later step: {wrong}"
