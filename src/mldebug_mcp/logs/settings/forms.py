"""The text of a configuration → nested values, whatever form it is written in.

The forms are JSON, YAML, TOML, INI, Python source, command lines, printed objects, and blocks of lines with a key and
its value each. Nothing is run: what stands in Python source as a literal is taken.
"""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from mldebug_mcp.core.config_files import parse_yaml
from mldebug_mcp.core.lazy import regex
from mldebug_mcp.logs.json_yaml import parse_json
from mldebug_mcp.logs.settings.values import NotAnObjectError, parse_object, parse_value, value_in

# Blocks of lines with a key and its value each: `key: value`, `key = value`, Megatron's dots, tables, YAML.

_DOTTED = regex(r"(?P<indent>\s*+)(?P<key>[A-Za-z_][\w-]{0,80}) ?\.{3,} ?(?P<value>\S.{0,300})?")
_TABLE = regex(
    r"(?P<indent>)\s*+[|│┃]\s*+(?P<key>[A-Za-z_][\w ./-]{0,80}?)\s*+[|│┃]\s*+(?P<value>[^|│┃]{0,300}?)\s*+[|│┃]?"
)
_PAIR = regex(
    r"(?P<indent>[ \t]*+)(?:[*•]\s++|-\s++(?=[\w ]{1,60}[:=]\s))?"
    r"['\"]?(?P<key>[A-Za-z_][\w ./-]{0,80}?(?:\([^()\n]{0,80}\))?)['\"]?"
    r"\s*+(?::(?=\s|$)|=(?!=))\s*+(?P<value>.{0,1000}?),?"
)
_ALIGNED = regex(
    r"(?P<indent>[ \t]*+)(?P<key>[A-Za-z_][\w./-]{0,80}(?: [\w./-]{1,40}){0,3}+)(?: ?\t ?| {2,200})"
    r"(?P<value>[^\s({](?:[^ \t({]| (?! )){0,80})"
)
"""A column of keys and one of values, with nothing but blanks between them."""
_ITEM = regex(r"(?P<indent>[ \t]*+)-\s++(?P<value>[^:=\n]{1,200}|['\"].{0,200}['\"])")
_OTHER_PAIR = regex(r"[\s,|;][A-Za-z_][\w./-]{0,40}\s?[:=]\s?[-+\d.]")
_REMARK = regex(r"\s+(?:#.*|\[default:.*\]\s*)$")
MAX_SETTING_CHARACTERS = 2000
"""Characters of a line that may be a setting: a key, a value of at most a thousand, a remark."""


class Pair(NamedTuple):
    """A line with a key and its value; a value of None opens a block of its own, a key of "" is an item of a list."""

    indent: int
    key: str
    value: str | None
    dotted: bool = False


def pair_in(line: str) -> Pair | None:
    """Return the only key of a line and its value, None if there is none or more than one."""
    line = line.rstrip()
    if len(line) > MAX_SETTING_CHARACTERS:
        return None
    if "**" in line:
        line = line.replace("**", "")  # Markdown: "- **batch size**: 64"
    dotted = _DOTTED.fullmatch(line)
    if dotted:
        return Pair(len(dotted["indent"]), dotted["key"], dotted["value"] or "", dotted=True)
    table = _TABLE.fullmatch(line)
    if table:
        return Pair(0, table["key"], table["value"])
    pair = _PAIR.fullmatch(line)
    if pair:
        value = _REMARK.sub("", pair["value"]).rstrip(",")
        if _OTHER_PAIR.search(f" {value}") and value[:1] not in "{[(":
            return None
        return Pair(_width(pair["indent"]), pair["key"].strip(), value if value else None)
    other = _ALIGNED.fullmatch(line) or _ITEM.fullmatch(line)
    return Pair(_width(other["indent"]), other.groupdict().get("key", ""), other["value"]) if other else None


def settings_in_block(lines: Sequence[str]) -> tuple[dict[str, object], bool]:
    """Return the settings in a block of lines, indented ones below the key before them, and whether they are dotted."""
    found: dict[str, object] = {}
    above: list[tuple[int, str]] = []
    pairs = [pair for line in lines if (pair := pair_in(line)) is not None]
    for pair in pairs:
        if not pair.key:
            _add_item(found, above, pair)
            continue
        while above and above[-1][0] >= pair.indent:
            above.pop()
        name = "/".join([*(key for _, key in above), pair.key])
        if pair.value is None:
            above.append((pair.indent, pair.key))
        else:
            found.setdefault(name, value_in(pair.value))
    return found, bool(pairs) and sum(pair.dotted for pair in pairs) * 2 > len(pairs)


def _add_item(found: dict[str, object], above: list[tuple[int, str]], item: Pair) -> None:
    """Add an item to the list that the key before it opened."""
    name = "/".join(key for _, key in above)
    if name and item.value is not None:
        items = found.setdefault(name, [])
        if isinstance(items, list):
            items.append(value_in(item.value))


def _width(indent: str) -> int:
    return len(indent.expandtabs(4))


# Command lines: `torchrun --nproc-per-node 8 train.py --lr 3e-4 --bf16 --no-shuffle trainer.max_steps=100`.

MAX_WORDS = 2000
MAX_LIST = 16
"""Words that one option takes."""

STARTED = regex(
    r"(?:^|[\s/+$>;&(])(?:python[\d.]*|torchrun|deepspeed|accelerate\s+launch|srun|mpirun|horovodrun|uv\s+run|"
    r"llamafactory-cli|axolotl|trl|swift|colossalai\s+run|lightning\s+run)\s+(?=\S)"
)
"""What starts a training on a command line."""
_OPTION_AHEAD = r"(?:[^\s=-]\S{0,200}[ \t]{1,8}){0,4}(?=--?[A-Za-z]|\\[ \t]{0,80}$)"
_SCRIPT = regex(
    r"^[ \t$>]{0,8}(?:[A-Za-z_]\w{0,60}=[^\s=]{0,200}[ \t]{1,8}){0,16}"
    rf"(?:[\w.~/-]{{1,200}}\.(?:py|sh)[ \t]{{1,8}}(?:{_OPTION_AHEAD}|(?=[A-Za-z_][\w.]{{0,80}}=))"
    rf"|\.{{0,2}}/[\w./-]{{1,200}}[ \t]{{1,8}}{_OPTION_AHEAD})",
    re.MULTILINE,
)
"""The name of a script at the beginning of a line, behind variables of the shell, and an option or an override."""
_ASSIGNED_IN_SHELL = regex(r"^[ \t]{0,80}(?:export )?([A-Za-z_]\w{0,80})=([\w.+-]{1,80})[ \t]{0,80}$", re.MULTILINE)
_VARIABLE = regex(r"\$(?:\{([A-Za-z_]\w{0,80})\}|([A-Za-z_]\w{0,80}))")
_OPTION = regex(r"--?([A-Za-z][\w./-]*)(?:=(.*))?", re.DOTALL)
_OVERRIDE = regex(r"[+~]{0,2}([A-Za-z_][\w./@]*)=(.*)", re.DOTALL)
_NUMBER = regex(r"-?[\d.]")


def settings_in_words(words: Sequence[str]) -> dict[str, object]:
    """Return the options and overrides among the words of a command line; an option without a value is a flag."""
    found: dict[str, object] = {}
    name = ""
    for word in words[:MAX_WORDS]:
        option, override = _OPTION.fullmatch(word), _OVERRIDE.fullmatch(word)
        if option and not _NUMBER.match(word):
            name = option[1]
            if option[2] is not None:
                found[name], name = value_in(option[2]), ""
            elif name.startswith(("no-", "no_")):
                found[name[3:]], name = False, ""
            else:
                found[name] = True
        elif override and not name:
            found[override[1]] = value_in(override[2])
        elif name:
            before = found[name]
            taken = [] if before is True else before if isinstance(before, list) else [before]
            if len(taken) < MAX_LIST and not word.endswith(".py"):
                found[name] = value_in(word) if not taken else [*taken, value_in(word)]
            if word.endswith(".py"):
                name = ""
    return found


def starts_training(text: str) -> bool:
    """Say whether a command line stands in a text: what runs a program, or a script and its options."""
    return STARTED.search(text) is not None or _SCRIPT.search(text) is not None


def settings_in_command(text: str) -> dict[str, object]:
    """Return the options of a command line; a line that ends in a backslash goes on.

    A variable of the shell stands for the plain value that a line assigns to it.
    """
    joined = re.sub(r"\\\s*\n", " ", text[:100_000])
    values = dict(_ASSIGNED_IN_SHELL.findall(joined))
    if values:
        joined = _VARIABLE.sub(lambda match: values.get(match[1] or match[2], match[0]), joined)
    lines = [line for line in joined.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    found: dict[str, object] = {}
    for line in lines[:MAX_WORDS]:
        try:
            words = shlex.split(line)
        except ValueError:  # a quote that is not closed
            words = line.split()
        found.update(settings_in_words(words))
    return found


# Settings in Python source: a configuration that is one, as MMEngine's, or a call that holds them.

LEAST_ARGUMENTS = 4
"""Named arguments that make a call at the top of a file one of settings."""
MAX_DEPTH = 20
MAX_CHARACTERS = 512 * 1024
"""Of a source: a megabyte of numbers takes three seconds and half a gigabyte to parse. Settings take some kilobytes."""


def settings_in_source(text: str) -> dict[str, object]:
    """Return what the top of a Python file assigns as literals, and the named arguments of the calls there.

    Raises:
        ValueError: it is not Python, or very much of it.
    """
    return dict(pair for statement in _statements(text) for pair in _assigned(statement))


def only_assigns(text: str) -> bool:
    """Say whether a Python file does nothing but import and assign, as a configuration does and a program does not."""
    try:
        statements = _statements(text)
    except ValueError:
        return False
    return all(
        isinstance(statement, ast.Import | ast.ImportFrom | ast.Assign | ast.AnnAssign)
        or (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))
        for statement in statements
    )


def _statements(text: str) -> list[ast.stmt]:
    if len(text) > MAX_CHARACTERS:
        raise ValueError(f"{len(text):,} characters of Python are too many for settings")
    try:
        return ast.parse(text).body
    except (SyntaxError, MemoryError, RecursionError) as error:
        raise ValueError(f"no Python source ({type(error).__name__})") from None


def _assigned(statement: ast.stmt) -> Iterator[tuple[str, object]]:
    if not isinstance(statement, ast.Assign | ast.AnnAssign | ast.Expr) or statement.value is None:
        return
    value = _literal(statement.value, 0)
    if value is not None and not isinstance(statement, ast.Expr):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        yield from ((target.id, value) for target in targets if isinstance(target, ast.Name))
    elif isinstance(statement.value, ast.Call):
        arguments = _arguments(statement.value, 0)
        if len(arguments) >= LEAST_ARGUMENTS:
            yield from arguments.items()


def _literal(node: ast.expr, depth: int) -> object:
    """Return the value of a literal, with calls of `dict` in it; None for anything else."""
    if depth > MAX_DEPTH:
        return None
    if isinstance(node, ast.Call):
        is_dict = isinstance(node.func, ast.Name) and node.func.id == "dict" and not node.args
        return _arguments(node, depth) if is_dict else None
    if isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        return {key.value: _literal(value, depth + 1) for key, value in pairs if isinstance(key, ast.Constant)}
    if isinstance(node, ast.List | ast.Tuple):
        return [_literal(elt, depth + 1) for elt in node.elts]
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, MemoryError, RecursionError):
        return None


def _arguments(node: ast.Call, depth: int) -> Mapping[str, object]:
    values = {keyword.arg: _literal(keyword.value, depth + 1) for keyword in node.keywords if keyword.arg}
    return {name: value for name, value in values.items() if value is not None}


# The text of a configuration → nested values, whatever form it is written in.

Values = Mapping[str, object]

MAX_YAML_BYTES = 512 * 1024
"""What YAML may stand for is bounded in `yaml_text`; this bounds what is parsed to count it."""

_SECTION = regex(r"^[ \t]{0,80}\[[\w .:/-]{1,200}\][ \t]{0,80}$", re.MULTILINE)
_OBJECT = regex(r"\s*(?:[A-Za-z_]\w*\s*=\s*)?(?:[A-Z]\w*\(|\{)")
_FLAGS = regex(r"\s*--?[A-Za-z]")
LEAST_OPTIONS = 3
"""Options behind the name of any program that make a first line a command. Chosen: prose may name one or two."""
_OPTION_OF_PROGRAM = regex(r"\s--[A-Za-z]")
_REMARKS = regex(r"^[ \t]{0,80}#[^\n]*+\n?", re.MULTILINE)
_COMMANDS = ("args", "argv", "command", "cmd")
_ASSIGNED = regex(r"^[A-Za-z_]\w{0,200}[ \t]{0,80}=(?!=)", re.MULTILINE)


class UnreadableError(ValueError):
    """The text is in none of the forms that its name allows."""


def values_in(text: str, suffix: str) -> Values:
    """Return the values of a configuration.

    A suffix of "" lets the text tell its form.

    Raises:
        UnreadableError: what is wrong with it.
    """
    forms = _FORMS.get(suffix.lower(), (json, _toml, printed, command, _ini, yaml, block))
    first = ""
    for form in forms:
        try:
            values = form(text)
        except (ValueError, RecursionError) as error:
            first = first or str(error) or type(error).__name__
            continue
        if isinstance(values, list):
            values = settings_in_words([value for value in values if isinstance(value, str)])  # overrides of Hydra
        if isinstance(values, Mapping) and values:
            return {str(key): value for key, value in values.items()}
    raise UnreadableError(first or "no settings in it; a mapping of names to values is needed")


def json(text: str) -> object:
    """Parse JSON, which may hold a command line, as one text or as a list of words."""
    values = parse_json(text)
    if not isinstance(values, dict):
        return values
    lines = [values[key] for key in _COMMANDS if isinstance(values.get(key), str)]
    words = [str(word) for key in _COMMANDS if isinstance(values.get(key), list) for word in values[key]]
    found = settings_in_command("\n".join(filter(starts_training, lines)))
    return {**values, **found, **(settings_in_words(words) if any(map(_FLAGS.match, words)) else {})}


def yaml(text: str) -> object:
    """Parse YAML."""
    if len(text) > MAX_YAML_BYTES:
        raise ValueError(f"more than {MAX_YAML_BYTES:,} bytes of YAML")
    return parse_yaml(text)


def printed(text: str) -> object:
    """Parse what `print` makes of a Namespace, a dataclass or a dictionary."""
    start = _OBJECT.match(text)
    if start is None:
        raise NotAnObjectError("not a printed object")
    return parse_object(text, start.end() - 1 if text[start.end() - 1] == "{" else start.start())[0]


def command(text: str) -> object:
    """Parse a command line or a shell script; options alone are one too, on one line or on several."""
    if _FLAGS.match(plain := _REMARKS.sub("", text)):
        return settings_in_command(" ".join(plain.splitlines()))
    if not starts_training(text) and len(_OPTION_OF_PROGRAM.findall(plain.lstrip().partition("\n")[0])) < LEAST_OPTIONS:
        raise ValueError("no command line")
    return settings_in_command(text)


def block(text: str) -> object:
    """Parse lines of `key: value` or `key = value`, as many an `opt.txt` holds them."""
    return settings_in_block(text.splitlines()[:5000])[0]


def _toml(text: str) -> object:
    if not _ASSIGNED.search(text):
        raise ValueError("not TOML")
    import tomllib  # seldom needed, as configparser

    return tomllib.loads(text)


def _ini(text: str) -> object:
    if not _SECTION.search(text):
        raise ValueError("no [section]")
    import configparser

    parser = configparser.RawConfigParser(strict=False, inline_comment_prefixes=("#", ";"), allow_no_value=True)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    try:
        parser.read_string(text)
    except (configparser.Error, AttributeError) as error:  # the latter, before 3.13, where a key without value goes on
        raise ValueError(str(error)) from None
    return {**_typed(parser.defaults()), **{name: _typed(dict(parser.items(name))) for name in parser.sections()}}


def _typed(values: Mapping[str, str | None]) -> dict[str, object]:
    return {key: None if value is None else parse_value(value) for key, value in values.items()}


_FORMS: dict[str, tuple[Callable[[str], object], ...]] = {
    ".json": (json,),
    ".yaml": (yaml,), ".yml": (yaml,),
    ".toml": (_toml,),
    ".ini": (_ini, block), ".cfg": (_ini, block), ".conf": (_ini, block),
    ".sh": (command,), ".sbatch": (command,), ".slurm": (command,),
    ".py": (settings_in_source,),
}  # fmt: skip
