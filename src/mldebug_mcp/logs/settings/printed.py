"""The text of a configuration → nested values, and the configuration that a script printed at the head of its log."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice, takewhile
from typing import NamedTuple

from mldebug_mcp.core.lazy import regex
from mldebug_mcp.core.text import clean, shorten
from mldebug_mcp.logs import json_yaml
from mldebug_mcp.logs.line_prefixes import without_prefix
from mldebug_mcp.logs.names.metrics import COUNTERS, canonical, is_telling
from mldebug_mcp.logs.names.settings import settings_of
from mldebug_mcp.logs.numbers import NUMBER
from mldebug_mcp.logs.settings.settings import (
    NotAnObjectError,
    Settings,
    number_of,
    parse_object,
    parse_value,
    value_in,
)

# The forms are JSON, YAML, TOML, INI, Python source, command lines, printed objects, and blocks of lines with a key and
# its value each. Nothing is run: what stands in Python source as a literal is taken.


# Blocks of lines with a key and its value each: `key: value`, `key = value`, Megatron's dots, tables, YAML.

_DOTTED = regex(r"(?P<indent>\s*+)(?P<key>[A-Za-z_][\w-]{0,80}) ?\.{3,} ?(?P<value>\S.{0,300})?", needs="...")
_TABLE = regex(
    r"(?P<indent>)\s*+[|│┃]\s*+(?P<key>[A-Za-z_][\w ./-]{0,80}?)\s*+[|│┃]\s*+(?P<value>[^|│┃]{0,300}?)\s*+[|│┃]?",
    needs="|",
)
_PAIR = regex(
    r"(?P<indent>[ \t]*+)(?:[*•]\s++|-\s++(?=[\w ]{1,60}[:=]\s))?"
    r"['\"]?(?P<key>[A-Za-z_][\w ./-]{0,80}?(?:\([^()\n]{0,80}\))?)['\"]?"
    r"\s*+(?::(?=\s|$)|=(?!=))\s*+(?P<value>.{0,1000}?),?",
    needs=(":", "="),
)
_ALIGNED = regex(
    r"(?P<indent>[ \t]*+)(?P<key>[A-Za-z_][\w./-]{0,80}(?: [\w./-]{1,40}){0,3})(?: ?\t ?| {2,200})"
    r"(?P<value>[^\s({](?:[^ \t({]| (?! )){0,80})",
    needs=("\t", "  "),
)
"""A column of keys and one of values, with nothing but blanks between them."""
_ITEM = regex(r"(?P<indent>[ \t]*+)-\s++(?P<value>[^:=\n]{1,200}|['\"].{0,200}['\"])")
_OTHER_PAIR = regex(r"[\s,|;][A-Za-z_][\w./-]{0,40}\s?[:=]\s?[-+\d.]")
_REMARK = regex(r"\s+(?:#.*|\[default:.*\]\s*|(?<=\d\s)\([^()]*\))$")
"""What stands behind a value: "vocab_size = 96 (inside data/meta.pkl)"."""
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
    r"llamafactory-cli|axolotl|trl|swift|colossalai\s+run|lightning\s+run)\s+(?=\S)",
    needs=("python", "run", "deepspeed", "accelerate", "llamafactory-cli", "axolotl", "trl", "swift"),
)
"""What starts a training on a command line."""
_OPTION_AHEAD = r"(?:[^\s=-]\S{0,200}[ \t]{1,8}){0,4}(?=--?[A-Za-z]|\\[ \t]{0,80}$)"
_SCRIPT = regex(
    r"^[ \t$>]{0,8}(?:[A-Za-z_]\w{0,60}=[^\s=]{0,200}[ \t]{1,8}){0,16}"
    rf"(?:[\w.~/-]{{1,200}}\.(?:py|sh)[ \t]{{1,8}}(?:{_OPTION_AHEAD}|(?=[A-Za-z_][\w.]{{0,80}}=))"
    rf"|\.{{0,2}}/[\w./-]{{1,200}}[ \t]{{1,8}}{_OPTION_AHEAD})",
    re.MULTILINE,
    needs=(".py", ".sh", "/"),
)
"""The name of a script at the beginning of a line, behind variables of the shell, and an option or an override."""
_ASSIGNED_IN_SHELL = regex(
    r"^[ \t]{0,80}(?:export )?([A-Za-z_]\w{0,80})=([\w.+-]{1,80})[ \t]{0,80}$", re.MULTILINE, needs="="
)
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
    if not text:
        return {}
    import shlex

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

LEAST_CALL_ARGUMENTS = 4
"""Named arguments that make a call at the top of a file one of settings."""
MAX_SOURCE_DEPTH = 20
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
        if len(arguments) >= LEAST_CALL_ARGUMENTS:
            yield from arguments.items()


def _literal(node: ast.expr, depth: int) -> object:
    """Return the value of a literal, with calls of `dict` in it; None for anything else."""
    if depth > MAX_SOURCE_DEPTH:
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
    values = json_yaml.parse_json(text)
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
    from mldebug_mcp.core.config_files import parse_yaml  # few logs print any

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


MAX_LINES = 3000
MAX_LINE = 20_000
MAX_OBJECT_LINES = 1000
MAX_TRIES = 50
"""Printed objects that are looked at."""
LEAST_KNOWN = 4
"""Known settings that make lines a configuration; chosen by hand: a record of a log has a rate and a batch."""
LEAST_ONCE = 2
"""... of an object that is printed once: records come again."""
LEAST_ARGUMENTS = 5
"""... and keys of a list of arguments whose form tells that it is one: Megatron's dots, a Namespace."""

_CALL = regex(r"\b[A-Z]\w*\((?=\s*$|[A-Za-z_]\w*=)", needs="(")
_CALL_OF_ARGUMENTS = regex(r"Namespace|Arg|Config|Param|Setting|Option")
_LOGGER = regex(
    r"^\s*[A-Za-z_][\w.]*(?:\s-(?=\s)(?:\s(?:INFO|DEBUG|WARNING)\s-(?=\s))?"
    r"|:(?=\s+[A-Za-z_][\w./-]{0,80}\s?[:=]\s))"
)
"""The name of a logger behind time and level, or between them."""
_MARK = regex(r"[ \t]{0,40}(?:#+|=+>|>+)[ \t]{1,8}(?=[A-Za-z_])")
"""What may stand before each setting of a block: a comment above a table, an arrow."""
_VALUE = r"""'[^']{0,200}'|"[^"]{0,200}"|\([^()]{0,200}\)|\[[^][]{0,200}\]|"""
_EQUALS = regex(rf"(?<![^\s,;|([])([A-Za-z_][\w./-]{{0,80}})=({_VALUE}[^\s,;|=]{{1,200}})(?=[\s,;|)\]]|$)")
_KEY = r"(?:^|[:\s])(?P<key>[A-Za-z_][\w./-]{0,80}(?: [A-Za-z_][\w./-]{0,40}){0,2})"
_PART = regex(rf"{_KEY}\s?(?:[:=]\s?|\s(?=[-+]?[\d.]))(?P<value>{_VALUE}[^\s:=]{{1,200}})")
"""A part of a line of settings between separators: `batch size: 64`, `lr = 1.0`, `epochs 12`."""
_LABELLED_PART = regex(rf"{_KEY}\s?(?:[:=]\s?|\s)(?P<value>{_VALUE}[^\s:=]{{1,200}})")
"""... behind a label, where a blank does for any value: `optimizer Adam`."""
_ASIDE = regex(r"\s\(([A-Za-z][\w ]{0,30}\s\d[\d.e-]{0,12})\)(?=\s*(?:,|$))", re.IGNORECASE, needs="(")
"""A setting in brackets behind another one: torchtitan's "total steps 1000 (warmup 200)"."""
_JOINS = regex(r"^(?:with|and|using)\s", re.IGNORECASE)
_STARTS_AT = regex(r"\b(?:at|from) (?:step|epoch|iteration)$", re.IGNORECASE)
"""Where a run starts, in a sentence in front of its settings."""
_SEPARATOR = regex(r"[,;|](?![^(\[]*[)\]])")
_LABEL = regex(
    r"\b(?:config(?:uration)?s?|hyper-?param(?:eter)?s?|settings|arguments|args|options)\b[^:=]{0,40}[:=]",
    re.IGNORECASE,
    needs=("config", "param", "settings", "arguments", "args", "options"),
)
"""What stands before settings on a line."""
_HEADING = regex(
    r"\b(?:config(?:uration)?s?|(?:hyper-?)?param(?:eter)?s?|settings|arguments|args|options)\s?:\s{0,10}$",
    re.IGNORECASE,
    needs=("config", "param", "settings", "arguments", "args", "options"),
)
"""A line above a block that says that settings follow: Flair's "Training Params:"."""
_COMMON = regex(r"\b(?:lr|learning|batch|bs\b|workers\b|epochs?|optim)", re.IGNORECASE)
MIN_ON_A_LINE = 3
"""Settings that make a line one of settings."""
MAX_LINE_OF_PAIRS = 2000
"""Characters of such a line."""
MAX_LABEL_WORDS = 6
"""Words before the first setting of a line. Chosen: a sentence has more."""
MAX_OTHER = 0.25
"""Share of a line behind its first setting that is not a setting. Chosen: values hold blanks, sentences more."""
_BRACE = regex(r"[{]")
_ASSIGNS = regex(r"[A-Za-z_]\w{0,80} = \S")
_IN_SOURCE = regex(r"[A-Za-z_]\w{0,80} = \S|(?:\s{2}|[\s)\]}'\"]*[)\]}'\"])")
"""A line of Python source that assigns, or goes on with a value, indented by more than a line without its prefix."""
_OPTIMIZER = regex(
    r"(?<![\w./-])(?P<optimizer>sgd|adam|adamw|nadam|radam|adamax|rmsprop|lion|adagrad|adadelta|adafactor|lamb|muon)"
    r"(?![\w./-])(?:[\s(]{0,3}(?:lr\s?[=:]?\s?)?(?P<rate>\d?\.\d{1,12}(?:e-?\d{1,2})?|\d{1,3}e-?\d{1,2})(?![\w.]))?",
    re.IGNORECASE,
)
"""An optimizer in a line of words, with its learning rate behind it: "adam 1e-3"."""
_TERSE_KEYS = {
    "lr": "learning_rate", "wd": "weight_decay", "weight decay": "weight_decay", "m": "momentum", "mom": "momentum",
    "momentum": "momentum", "bs": "batch_size", "batch": "batch_size", "batch size": "batch_size",
    "local_bs": "per_device_train_batch_size", "micro_bs": "per_device_train_batch_size", "clip": "max_grad_norm",
    "warmup": "warmup_steps", "dropout": "dropout", "seed": "seed", "accum": "gradient_accumulation_steps",
}  # fmt: skip
"""What people write before a value in a line of words, and the setting that they mean."""
_TERSE_PAIR = regex(
    rf"(?<![\w./-])(?P<key>[A-Za-z_]{{1,20}}(?: (?:decay|size))?)\s?[=:]?\s?(?P<value>{NUMBER})(?![\w./]|\s?%|-\d)",
    re.IGNORECASE,
)
_TERSE_COUNT = regex(
    r"(?P<warms>warm-?up(?: for| over| of)? )?(?<![\w./-])(?<!every )(?<!each )(?<!per )(?<!after )(?<!last )"
    r"(?P<number>\d{1,9}) (?P<unit>epochs|steps|updates|iterations|iters)\b(?P<warm> (?:of )?(?:linear )?warm-?up)?",
    re.IGNORECASE,
)
MAX_TERSE_LINE = 300
"""Characters of such a line."""
MAX_RATE = 10.0
"""A learning rate. Chosen: a number behind an optimizer that is larger counts something."""
_SIZES_IN_PROSE = regex(
    r"\bvocab(?:ulary)?(?:[ _]?size)?(?: is| of|:|=)?\s{0,3}=?\s{0,3}(?P<number>\d[\d,]{0,12})(?![\w.%])"
    r"|\bvocab[^\d\n]{1,40}?(?P<entries>\d[\d,]{0,12}) (?:entries|symbols|tokens|types|pieces|characters|chars)\b"
    r"|(?<![\w.=])(?P<classes>\d{1,6})(?=(?: \w+)? classes\b)",
    re.IGNORECASE,
)
_ALPHABET = regex(
    r"\balphabet(?:[ _]size)?(?: of|:|=)?\s{0,3}(?P<alphabet>\d{2,5})(?![\w.,%])"
    r"|^\s{0,8}(?:distinct |unique )?(?:characters|symbols|letters)\s?[:=]\s{0,3}(?P<letters>\d{2,4})\s{0,8}$"
    r"|(?<![\w.,])(?P<pieces>\d{2,6}) (?:pieces|(?:distinct|unique) (?:characters|chars|symbols|letters))\b",
    re.IGNORECASE,
    needs=("alphabet", "characters", "chars", "symbols", "letters", "pieces"),
)
"""What a line says of how many signs a text is made of; its losses may be in bits."""
_HARDER_IN_PROSE = regex(
    r"(?<!no )(?<!without )\b(?:(?P<mixed>mix-?up|cut-?mix)|(?P<dropout>dropout)"
    r"|(?P<smoothed>(?:label[ _-])?smoothing|(?:labels|targets) smoothed))(?: of| by| at)?['\"]?\s?[:=]?\s?"
    r"\(?(?:alpha|beta|a|p)?\s?=?\s?(?P<share>[01]?\.\d{1,4})(?![\w.%])",
    re.IGNORECASE,
)
"""What a line says of how training rows are made harder: "mixup(beta 0.4), targets smoothed 0.1, dropout 0.4"."""
_HARDER_ABOVE_RECORDS = 40
"""Lines at the beginning of a log in which it is looked for."""
_WORLD_IN_PROSE = regex(r"\bworld[ _]?size\s?[:=]?\s?(?P<number>\d{1,6})(?![\w.])", re.IGNORECASE)
_PASS_IN_PROSE = regex(
    r"\b(?:1|one|an|per) epoch\s?(?:=|is|:)\s?(?P<number>\d{1,9}) (?:steps|batches|iterations|updates)\b"
    r"|(?<![\w.])(?P<per>\d{1,9}) (?:steps|batches|iterations|updates) ?(?:per|/|an) ?epoch\b(?!\s?=)",
    re.IGNORECASE,
    needs="epoch",
)
"""What a line says of how many steps a pass has: "1 epoch = 618 steps"."""
_FLOOR_IN_PROSE = regex(
    r"\bentropy of the (?:source|data|process|chain|generator)\b[^:=\d]{0,60}[:=]\s{0,3}"
    r"(?P<of>\d{1,4}\.\d{1,9}+)(?! ?bits)"
    r"|\b(?:from|of) the data\b[^\n]{0,120}?\b\w{0,20}(?:nll|entropy)\s?[:=]\s{0,3}"
    r"(?P<own>\d{1,4}\.\d{1,9}+)(?! ?bits)",
    re.IGNORECASE,
)
"""What a line says of the least loss that a model of these data can have."""
_LOADED = regex(
    r"\b(?:load(?:ed|ing)|base(?! lr| learning)|pretrained|(?:the|model) card|warm[ -]?start\w{0,2}|start(?:ing)? point"
    r"|(?:resum|continu|start|initiali[sz])\w{1,4} (?:from|weights|at))\b",
    re.IGNORECASE,
    needs=("load", "base", "pretrained", "card", "start", "point", "resum", "continu", "initiali"),
)
"""What a line says of the weights with which a run begins ..."""
_NOT_AS_LOADED = regex(r"\b(?:best|sav(?:ed|ing)|w(?:rote|riting)|step \d|epoch \d|iter \d)", re.IGNORECASE)
"""... and what records hold instead; the best ones are loaded at the end."""
_LEVEL_AS_LOADED = regex(
    r"\b(?:\w{1,12}[_ ]){0,2}(?:loss|nll|(?P<perplexity>perplexity|ppl))\b"
    r"(?: (?:of|is|was|there|the|starting|point|base|model)){0,6}\s?[:=]?\s{0,3}(?P<level>\d{1,4}\.\d{1,9}+)(?!\s?%)"
    r"|(?<![\w.])(?P<nats>\d{1,2}\.\d{1,9}) nats?\b",
    re.IGNORECASE,
    needs=("loss", "nll", "perplexity", "ppl", "nat"),
)
"""What it says of their loss."""
_FILES_IN_PROSE = regex(
    r"(?:[^\n]{0,80}[|\]:-] {1,4})?\W{0,4}(?:[a-z]{2,4}ing )?"
    r"(?:(?P<train>train(?:ing)?)|(?:val(?:id(?:ation)?)?|eval(?:uation)?|dev|test|held.?out))"
    r"(?: (?:set|data|split|files?|shards?|rows)){0,2}(?::| reads| (?:\w{1,8} )?from)\s{1,4}"
    r"(?P<files>(?:[\w./-]{0,80}[\w/-]\.(?:jsonl?|csv|tsv|parquet|arrow|bin|npy|npz|txt|tar|h5|tfrecord|pt)"
    r"(?:\.\w{2,4})?(?![\w/])|[\w./-]{0,80}?(?:shard|part|chunk|fold|file|split)[_-]?\d).{0,200})",
    re.IGNORECASE,
    needs=("train", "val", "eval", "dev", "test", "held"),
)
"""A line that says which files the rows of training or evaluation are read from: "train: shard-00 .. shard-09"."""
_ROWS = r"(?:rows|examples|samples|sequences|pairs|records|images|lines)"
_DISTINCT_IN_PROSE = regex(
    rf"(?<![\w.])(?P<rows>\d[\d,]{{0,12}}) (?:\w{{1,20}} )?{_ROWS}\b\W{{1,4}}(?:(?:of|with|only|but)(?: which)? )?"
    rf"(?P<distinct>\d[\d,]{{0,12}}) (?:are )?(?:distinct|unique)(?: {_ROWS}|(?! ?\w))"
    rf"|(?<![\w.])(?P<of>\d[\d,]{{0,12}}) (?:distinct|unique)(?: (?:\w{{1,20}} )?{_ROWS})? (?:out of|of|among|in) "
    rf"(?P<all>\d[\d,]{{0,12}})(?! ?(?!{_ROWS})[a-z])",
    re.IGNORECASE,
    needs=("distinct", "unique"),
)
"""A line that says how many of the training rows are distinct."""
_FORMAT_IN_PROSE = regex(
    r"\b(?:dtype|(?P<weights>weights|params|parameters))(?: is| are| in|:|=)?\s{0,8}=?\s{0,3}"
    r"(?:\d[\d., (KMB]{0,20}(?:in )?)?(?:torch\.|jnp\.)?"
    r"(?P<format>bfloat16|bf16|float16|fp16)\b",
    re.IGNORECASE,
    needs=("dtype", "weights", "params", "parameters"),
)
"""What a line says of a half-precision format; weights in float32 may be computed with in any."""
_OF_EVALUATION = regex(r"\b(?:val|valid|validation|eval|evaluation|dev|test)\b", re.IGNORECASE)
LEAST_CLASSES = 2
"""Classes, or words, without which a printed number is not their count."""
LOOKS_AHEAD = 100
"""Lines behind an object in which it would come again, were it a record."""
_COUNTERS = frozenset(
    {"step", "epoch", "loss", "iteration", "iter", "global_step", "training_iteration", "train_loss", "val_loss",
     "eval_loss", "mean_loss"}
)  # fmt: skip
"""What a record of a log holds as a number, and a configuration hardly ever ..."""
_STEPS = frozenset({"step", "global_step", "iteration", "iter"})
"""... and what a part of one holds, where the loggers' own fields stand around it."""


@lru_cache(maxsize=8)
def settings_in_head(head: str) -> Settings:
    """Return the settings printed in the beginning of a log; a log that is watched asks again and again."""
    return settings_printed_in(head.splitlines())


def settings_printed_in(lines: Sequence[str]) -> Settings:
    """Return the settings that a log printed in some of its lines, such as the head of an attempt."""
    clean = [_message(line[:MAX_LINE]) for line in islice(lines, MAX_LINES)]
    configurations = list(_configurations(clean))
    if sides := _sides_in_prose(clean[:MAX_LINES_OF_PROSE]):
        configurations.append((0, sides))
    found = [Settings.of(values, f"printed at line {at + 1}") for at, values in configurations]
    notes = () if found else _not_read(clean)
    return Settings.merged(*found, Settings(notes=notes))


def _message(line: str) -> str:
    """Return a line without its colours and its prefix, its indentation kept: it tells what a key belongs to."""
    if _is_object(line):
        return line
    line = clean(line) if "\x1b" in line else line
    message = without_prefix(line).message
    if len(message) == len(line):
        return line
    words = _LOGGER.sub("", message).lstrip()
    before = line[: line.rfind(words)] if words else ""
    return " " * (len(before) - len(before.rstrip())) + words


def _is_object(line: str) -> bool:
    """Say whether a line is an object and nothing else, as a record of JSON lines is."""
    return line.startswith("{") and line.endswith("}")


def is_configuration(values: Mapping[str, object], *, is_marked: bool = False, once: bool = False) -> bool:
    """Say whether a mapping is a configuration and not a record of a log.

    Args:
        values: Names to values.
        is_marked: Its form shows that it is one.
        once: No other object with its keys is printed.
    """
    if is_marked and len(values) >= LEAST_ARGUMENTS:
        return True
    is_record = any(_counts(name, value) for name, value in values.items()) or _holds_step(values)
    if is_record:
        return False
    known = len(Settings.of(values).known)
    is_plain = once and (len(values) >= LEAST_ARGUMENTS or known >= max(LEAST_ONCE, len(values) - 1))
    return known >= (LEAST_ONCE if is_plain else LEAST_KNOWN)


def _holds_step(values: Mapping[str, object]) -> bool:
    parts = [part for part in values.values() if isinstance(part, Mapping)]
    return any(name in _STEPS and number_of(value) is not None for part in parts for name, value in part.items())


def _counts(name: str, value: object) -> bool:
    return name.lower() in _COUNTERS and number_of(value) is not None


def _configurations(lines: Sequence[str]) -> Iterator[tuple[int, Mapping[str, object]]]:
    """Yield the configurations in some lines, each with the index of its first line."""
    at, tries = 0, MAX_TRIES
    shapes: set[tuple[str, ...]] = set()  # of the objects above
    while at < len(lines):
        line = lines[at]
        read = _object_at(lines, at) if tries else None
        if read is not None:
            values, end, is_marked = read
            tries -= 1
            once = tuple(values) not in shapes and not _comes_again(lines, end, values)
            shapes.add(tuple(values))
            if is_configuration(values, is_marked=is_marked, once=once):
                yield at, values
                at = end
                continue
            yield from _in_record(line, values, at)
        is_object = _is_object(line)
        if configuration := _of_prose(line, at, is_object=is_object, is_read=read is not None):
            yield at, configuration
        if is_object:
            at += 1
            continue
        several, end = _several_at(lines, at)
        if several:
            yield at, several
            at = end
            continue
        if ("-" in line and starts_training(line)) or _goes_on(line):
            end = _end_of_command(lines, at)
            yield from _in_command(lines, at, end)
            at = end
            continue
        block = _block_at(lines, at)
        if len(block) > 1:
            is_headed = _HEADING.search(block[0]) is not None
            values, is_marked = settings_in_block(block[1:] if is_headed else block)
            headed = is_headed and len(Settings.of(values).known) >= LEAST_ONCE
            if (headed or is_configuration(values, is_marked=is_marked)) and (is_marked or not _measures(values)):
                yield at, values
            else:
                of_lines = ((at + below, _sizes_in_prose(text)) for below, text in enumerate(block[1:], start=1))
                yield from ((number, sizes) for number, sizes in of_lines if sizes)
            at += len(block)
            continue
        at += 1


def _several_at(lines: Sequence[str], at: int) -> tuple[dict[str, object], int]:
    """Return the settings that Python source from a line on or the line alone holds, and the index of what follows."""
    source, end = _source_at(lines, at)
    if source:
        return source, end
    several = _on_a_line(lines[at]) or _in_words(lines, at)
    is_one = several and not _measures(several)
    if is_one and is_configuration(several, once=not _line_comes_again(lines, at, several)):
        return several, at + 1
    return {}, at


def _source_at(lines: Sequence[str], at: int) -> tuple[dict[str, object], int]:
    """Return what Python source sets that is printed from a line on, as MMEngine's, and the index of the line behind.

    Empty where it assigns no `dict(...)`: lines such as "loss = 0.5" are records.
    """
    first = at + (_HEADING.search(lines[at]) is not None)
    if first == len(lines) or not _ASSIGNS.match(lines[first]):
        return {}, at
    source = list(takewhile(_IN_SOURCE.match, islice(lines, first, first + MAX_OBJECT_LINES)))
    try:
        values = settings_in_source("\n".join(source))
    except ValueError:
        return {}, at
    is_nested = any(isinstance(value, Mapping) for value in values.values())
    return (values, first + len(source)) if is_nested else ({}, at)


def _in_record(line: str, values: Mapping[str, object], at: int) -> Iterator[tuple[int, Mapping[str, object]]]:
    """Yield the configuration that a record holds with its metrics, as each of RLlib does, with its line."""
    inside = values.get("config")
    if _is_object(line) and isinstance(inside, Mapping) and is_configuration(inside):
        yield at, inside


def _object_at(lines: Sequence[str], at: int) -> tuple[dict[str, object], int, bool] | None:
    """Return the object printed from a line on, the index of the line behind it, and whether it is one of arguments."""
    line = lines[at]
    if numbers := _numbers_in_record(line):
        return numbers, at + 1, False
    call, brace = _CALL.search(line), _BRACE.search(line)
    starts = [found for found in (call, brace) if found is not None]
    if not starts:
        return None
    start = min(starts, key=lambda found: found.start())
    ends_here = _is_object(line) and line.count("{") == line.count("}")
    text = line if ends_here else "\n".join(lines[at : at + MAX_OBJECT_LINES])
    try:
        value, end = parse_object(text, start.start())
    except NotAnObjectError:
        return None
    if not isinstance(value, dict) or not value:
        return None
    is_marked = start is call and _CALL_OF_ARGUMENTS.search(start[0]) is not None
    return value, at + text.count("\n", 0, end) + 1, is_marked


def _numbers_in_record(line: str) -> dict[str, object]:
    """Return the object of JSON that a line is, empty where it holds more than numbers: most records are read here."""
    values = json_yaml.parse_object(line) if _is_object(line) and "\\" not in line else None
    kinds = (type(value) is int or (type(value) is float and math.isfinite(value)) for value in (values or {}).values())
    return values if values and all(kinds) else {}


def _comes_again(lines: Sequence[str], behind: int, values: Mapping[str, object]) -> bool:
    """Say whether a key of an object stands in one of the lines behind it."""
    key = next(iter(values))
    return any(key in line for line in lines[behind : behind + LOOKS_AHEAD])


def _on_a_line(line: str) -> dict[str, object]:
    """Return the settings of a line that holds several and hardly anything else but a label in front.

    They are written `lr=0.1  batch=64  epochs=3`, or between commas, semicolons or bars as `lr: 0.1 | batch size: 64`.
    What the values are does not matter.
    """
    if len(line) > MAX_LINE_OF_PAIRS or not _COMMON.search(line):
        return {}
    return _with_equals(line) or _between_separators(line)


def _in_words(lines: Sequence[str], at: int) -> dict[str, object]:
    """Return the settings of a line that names an optimizer or a rate and others: "sgd lr 0.05 m 0.9 bs 64 clip 2.0".

    Its other words may be any. Not this where the line measures something, or comes again.
    """
    line = lines[at]
    optimizer = _OPTIMIZER.search(line) if len(line) <= MAX_TERSE_LINE else None
    if optimizer is None:
        return {}
    pairs = [(pair["key"].lower(), value_in(pair["value"])) for pair in _TERSE_PAIR.finditer(line)]
    found: dict[str, object] = {"optimizer": optimizer["optimizer"].lower()}
    if optimizer["rate"] and 0 < float(optimizer["rate"]) <= MAX_RATE:
        found["learning_rate"] = float(optimizer["rate"])
    found |= {_TERSE_KEYS[key]: value for key, value in reversed(pairs) if key in _TERSE_KEYS}
    for count in _TERSE_COUNT.finditer(line):
        planned, warms = (
            ("epochs", "warmup_epochs") if count["unit"].lower() == "epochs" else ("max_steps", "warmup_steps")
        )
        found.setdefault(warms if count["warms"] or count["warm"] else planned, int(count["number"]))
    measures = any(is_telling(key) or canonical(key) in COUNTERS for key, _ in pairs)
    return {} if measures or len(found) < MIN_ON_A_LINE else found


def _with_equals(line: str) -> dict[str, object]:
    found = list(_EQUALS.finditer(line)) if line.count("=") >= MIN_ON_A_LINE else []
    if len(found) < MIN_ON_A_LINE or len(line[: found[0].start()].split()) > MAX_LABEL_WORDS:
        return {}
    rest = re.sub(r"[\s,;|()\[\]]+", "", line[found[0].start() :])
    other = len(rest) - sum(len(re.sub(r"[\s,;|()\[\]]+", "", match[0])) for match in found)
    return {match[1]: value_in(match[2]) for match in found} if other <= MAX_OTHER * len(rest) else {}


def _between_separators(line: str) -> dict[str, object]:
    label = _LABEL.search(line)
    pattern = _PART if label is None else _LABELLED_PART
    text = _ASIDE.sub(r", \1", line[label.end() if label else 0 :])
    parts = [_JOINS.sub("", part.strip()) for part in _SEPARATOR.split(text) if part.strip()]
    if len(parts) < MIN_ON_A_LINE or len(parts[0].split()) > MAX_LABEL_WORDS + MIN_ON_A_LINE:
        return {}
    first = [match for match in pattern.finditer(parts[0]) if not _STARTS_AT.search(match["key"])]
    found = [match for match in (*first[-1:], *map(pattern.fullmatch, parts[1:])) if match is not None]
    if len(found) < MIN_ON_A_LINE or len(found) < (1 - MAX_OTHER) * len(parts):
        return {}
    return {
        (match["key"] if at else _without_label(match["key"])): value_in(match["value"])
        for at, match in enumerate(found)
    }


def _without_label(key: str) -> str:
    """Return the first key of a line without words of a label: "run with lr" is `lr`."""
    words = key.split()
    ends = (" ".join(words[at:]) for at in range(len(words)))
    return next((end for end in ends if settings_of(end)), key)


def _line_comes_again(lines: Sequence[str], at: int, values: Mapping[str, object]) -> bool:
    """Say whether a line near a line of settings, above or below, has all its keys, as the records of a log have."""
    near = (*lines[max(0, at - LOOKS_AHEAD) : at], *lines[at + 1 : at + 1 + LOOKS_AHEAD])
    return any(all(key in line for key in values) for line in near)


def _measures(values: Mapping[str, object]) -> bool:
    """Say whether values hold a number that training measures, such as a loss, or counts: `step`, not `steps`."""
    numbers = [key for key, value in values.items() if number_of(value) is not None]
    return any(is_telling(key) or (canonical(key) in COUNTERS and not key.lower().endswith("s")) for key in numbers)


def _not_read(lines: Sequence[str]) -> tuple[str, ...]:
    """Return a note on the first line that is labelled as settings, where none was read."""
    for number, line in enumerate(lines, start=1):
        if _LABEL.search(line) and len(_COMMON.findall(line)) > 1 and not _BRACE.search(line):
            return (f"line {number} looks like settings and is not read: {shorten(line.strip(), 120)}",)
    return ()


def _sizes_in_prose(line: str) -> dict[str, object]:
    """Return the tokens, classes, format, floor or loss that a line of prose names: "0.11M parameters, vocab 36"."""
    found: dict[str, object] = {}
    for match in _SIZES_IN_PROSE.finditer(line) if any(word in line.lower() for word in ("vocab", "classes")) else ():
        number = int((match["number"] or match["entries"] or match["classes"]).replace(",", ""))
        if number >= LEAST_CLASSES:
            found.setdefault("num_labels" if match["classes"] else "vocab_size", number)
    if "world" in line.lower() and (world := _WORLD_IN_PROSE.search(line)) is not None:
        found["world_size"] = int(world["number"])
    if (length := _PASS_IN_PROSE.search(line)) is not None:
        found["steps_per_epoch"] = int(length["number"] or length["per"])
    floor = _FLOOR_IN_PROSE.search(line) if any(word in line.lower() for word in ("entropy", "nll")) else None
    if floor is not None:
        found["loss_floor"] = float(floor["of"] or floor["own"])
    found |= _weights_in_prose(line)
    if (kept_in := _FORMAT_IN_PROSE.search(line)) is not None:
        found["param_dtype" if kept_in["weights"] else "dtype"] = kept_in["format"]
    if (files := _FILES_IN_PROSE.match(line)) is not None:
        found["train_files" if files["train"] else "eval_files"] = files["files"].strip()
    if (rows := _DISTINCT_IN_PROSE.search(line)) is not None and not _OF_EVALUATION.search(line):
        found["distinct_rows"] = int((rows["distinct"] or rows["of"]).replace(",", ""))
        found["train_rows"] = int((rows["rows"] or rows["all"]).replace(",", ""))
    return found


def _weights_in_prose(line: str) -> dict[str, object]:
    """Return the signs of a text, and the loss in nats of the weights with which a run begins, that a line gives."""
    found: dict[str, object] = {}
    if (signs := _ALPHABET.search(line)) is not None:
        found["alphabet_size"] = int(signs["alphabet"] or signs["letters"] or signs["pieces"])
    stated = _LEVEL_AS_LOADED.search(line) if _LOADED.search(line) and not _NOT_AS_LOADED.search(line) else None
    if stated is not None and (level := float(stated["level"] or stated["nats"])) > 0:
        found["checkpoint_loss"] = math.log(level) if stated["perplexity"] else level
    return found


def _of_prose(line: str, at: int, *, is_object: bool, is_read: bool) -> dict[str, object]:
    """Return what a line gives in words; of an object that cannot be read, by what training rows are made harder."""
    harder = _harder_in_prose(line) if at < _HARDER_ABOVE_RECORDS and not (is_object and is_read) else {}
    return harder if is_object else _sizes_in_prose(line) | harder


def _harder_in_prose(line: str) -> dict[str, object]:
    """Return by what share a line of prose says that labels are mixed or smoothed, or units dropped."""
    found: dict[str, object] = {}
    for match in _HARDER_IN_PROSE.finditer(line) if "." in line else ():
        key = "mixup" if match["mixed"] else "label_smoothing" if match["smoothed"] else "dropout"
        found.setdefault(key, float(match["share"]))
    return found


MAX_LINES_OF_PROSE = 60
"""Lines of the head in which lengths of rows are looked for. Chosen: samples of text follow."""
_SIDE = regex(
    r"\b(?:(?P<prompt>prompts?|users?|questions?|instructions?|inputs?)|(?P<answer>bot|assistants?|answers?|responses?|"
    r"repl(?:y|ies)|completions?|outputs?))\b(?: (?:side|turns?|part|rows?|text))?s?"
    r"(?P<between>[^\d,;|]{0,60}?)(?P<number>\d{1,5}(?:\.\d{1,4})?)(?![\w%]|[.,]\d|\s?/)",
    re.IGNORECASE,
)
"""How long the prompts and the answers of rows are on average: "user side .... 37.9 tok (mean)", "mean bot 10.3"."""
_IS_MEAN = regex(
    r"\b(?:mean|avg|average|on average)\b|\d (?:tok|tokens)\b(?!.{0,40}\bmax)",
    re.IGNORECASE,
    needs=("mean", "avg", "average", "tok"),
)
_ROWS_OF_UPDATE = regex(
    r"\b(?:rows|samples|examples|sequences|seqs|pairs|conversations|chats)\s?(?:/|per|an?)\s?(?:update|upd|step|batch)\b"
    r"[\s.:=]{1,80}(?P<behind>\d{1,6})(?![\w.,])"
    r"|(?<![\w.])(?P<before>\d{1,6}) (?:rows|samples|examples|sequences|seqs|pairs|conversations|chats)\s?"
    r"(?:/|per|an?)\s?(?:update|upd|step)\b"
    r"|, batch(?: size)?\s?[:=]?\s?(?P<batch>\d{1,6})(?![\w.,])",
    re.IGNORECASE,
    needs=("upd", "step", "batch"),
)


def _sides_in_prose(lines: Sequence[str]) -> dict[str, object]:
    """Return the mean tokens of prompts and of answers that lines of prose give, where both are given, and the rows."""
    found: dict[str, object] = {}
    for side in (side for line in lines if _IS_MEAN.search(line) for side in _SIDE.finditer(line)):
        found.setdefault("prompt_tokens" if side["prompt"] else "answer_tokens", float(side["number"]))
    if found.keys() < {"prompt_tokens", "answer_tokens"}:
        return {}
    rows = next(filter(None, map(_ROWS_OF_UPDATE.search, lines)), None)
    return found if rows is None else {"batch_size": int(rows["behind"] or rows["before"] or rows["batch"]), **found}


def _goes_on(line: str) -> bool:
    """Say whether a line is an option of a command that goes on; its beginning may not be pasted."""
    return line.lstrip().startswith("--") and line.rstrip().endswith("\\")


def _in_command(lines: Sequence[str], at: int, end: int) -> Iterator[tuple[int, Mapping[str, object]]]:
    values = settings_in_command("\n".join(lines[at:end]))
    if Settings.of(values).known:
        yield at, values


def _end_of_command(lines: Sequence[str], at: int) -> int:
    while at < len(lines) - 1 and lines[at].rstrip().endswith("\\"):
        at += 1
    return at + 1


def _block_at(lines: Sequence[str], at: int) -> list[str]:
    """Return the lines from one on that hold one key and its value each, up to the first that counts.

    Where the first of them has a mark before its key, so have all, and they come without it.
    """
    block: list[str] = []
    mark = _MARK.match(lines[at])
    for line in islice(lines, at, None):
        if mark is not None:
            if not line.startswith(mark[0]):
                break
            line = line[mark.end() :]  # noqa: PLW2901 - what is left is the setting
        pair = pair_in(line)
        if pair is None or (block and _counts(pair.key, pair.value)):
            break
        block.append(line)
    return block
