"""What messages say of values and arrays: text that is read, options, allowed values, shapes."""

from __future__ import annotations

import ast
import re

from mldebug_mcp.core.text import capitalised, nearest
from mldebug_mcp.judge.statements import (
    KINDS,
    QUOTED_NAME,
    VALUE,
    Forms,
    listing,
    origin_of,
    with_article,
)
from mldebug_mcp.logs.failures import MAX_CODE, Failure

FORMS = Forms()

# Text that is read.


_PATH = r"['\"](?P<path>[^'\"]{1,300})['\"]"


@FORMS.read_by(
    "tf_cast_string",
    r"could not convert string to \w{1,12}: (?:np\.str_\()?['\"](?P<value>[^'\"]{0,60})['\"]",
)
@FORMS.read_by(
    "number_text_invalid",
    r"invalid literal for int\(\) with base 10: (?:np\.str_\()?['\"](?P<value>[^'\"]{0,60})['\"]",
    r"conversion from `\w{1,20}` to `[iuf]\w{1,20}` failed (?:in column '(?P<column>[^']{1,60})' )?"
    r".{1,120}? values: \[['\"]?(?P<value>[^'\"\],]{0,60})",
    r"could not parse `(?P<value>[^`]{0,60})` as dtype `[iuf]\d{1,3}`(?: at column '(?P<column>[^']{1,60})')?",
    r"(?:Unable to parse string|cannot parse|error to (?:u?int|float|double|decimal)\S{0,12} invalid value) "
    r"['\"](?P<value>[^'\"]{0,60})['\"]",
    r"Failed to parse string: '(?P<value>.{0,60}?)' as a scalar of type (?:u?int|float|double|decimal)",
)
def _number_text(found: re.Match[str], _: Failure) -> tuple[str, str]:
    text = found["value"]
    text = re.sub(r'\\(?=/)|"', "", text)
    shown = f"`{text}`" if re.fullmatch(r"[\w.,%$/:+-]{1,30}", text) else "text" if text.strip() else "empty text"
    if not text.strip() or text.strip().lower() in {"n/a", "na", "none", "null", "-", "?", "nan", "missing", "."}:
        change = (
            "It is a missing value: name it where the file is read (na_values= in pandas, null_values= in polars), or "
            "pd.to_numeric(x, errors='coerce'); then fill or drop."
        )
    elif re.fullmatch(r"-?\d{1,12},\d{1,12}", text):
        change = "It has a comma: as decimal mark read it with decimal=',', between thousands with thousands=','."
    elif re.fullmatch(r"-?\d{1,12}\.\d{1,12}(?:e[-+]?\d{1,3})?", text):
        change = (
            "It is a number with a fraction: int(float(x)), or float(x) where fractions are meant. A reader that took "
            "the type from the first rows needs it given (schema_overrides, dtype) or more of them to look at."
        )
    else:
        change = (
            "It is not a number: a category or label to encode, a header row read as data, a unit or sign to strip, or "
            "columns in another order. Look at the row that holds it, and convert where the file is read."
        )
    column = found.groupdict().get("column") or ""
    where = f" in the column `{column}`" if re.fullmatch(VALUE, column) else ""
    return f"{capitalised(shown)} is to be turned into a number{where}.", change


@FORMS.read_by(
    "date_text_invalid",
    r"time data ['\"](?P<value>[^'\"]{0,60})['\"] (?:does not|doesn't) match format "
    r"['\"](?P<form>[^'\"]{0,60})['\"]",
    r"conversion from `\w{1,20}` to `(?:date|time)\S{0,40}` failed .{1,120}? values: "
    r"\[['\"]?(?P<value>[^'\"\],]{0,60})",
    r"(?:isoformat string|parsing datetime string|Unknown (?:datetime )?string format):? "
    r"(?:unable to parse )?['\"](?P<value>[^'\"]{0,60})['\"]",
    r"Failed to parse string: '(?P<value>.{0,60}?)' as a scalar of type (?:time|date)",
)
def _date_text(found: re.Match[str], _: Failure) -> tuple[str, str]:
    names = found.groupdict()
    text, form = names.get("value") or "", names.get("form") or ""
    shown = f"`{text}`" if re.fullmatch(r"[\w.,/:+-]{1,30}(?: [\d:.+-]{1,20})?", text) else "Text"
    wanted = f" of the format `{form}`" if re.fullmatch(r"[%\w.,/: +-]{1,40}", form) and "%" in form else ""
    return f"{shown} is read as a date or time{wanted}, and is not one.", (
        "Print the rows that fail, and give the format that they have (%d/%m/%Y, dayfirst=True), or format='mixed' for "
        "several. Where it is a missing value: errors='coerce' in pandas, strict=False in polars."
    )


@FORMS.read_by(
    "json_decode",
    r"JSONDecodeError: (?P<what>[A-Z][\w ,':]{2,80}?): line (?P<line>\d{1,9}) column (?P<column>\d{1,9})"
    r"(?: \(char (?P<char>\d{1,9})\))?",
)
def _json(found: re.Match[str], _: Failure) -> tuple[str, str]:
    what, line, column = found["what"], found["line"], found["column"]
    says = f"The text stops being JSON at line {line}, column {column}."
    if what == "Extra data":
        change = (
            "Further values follow the first: it is JSON lines. Read it line by line (json.loads(line), lines=True)."
        )
    elif (line, column) == ("1", "1"):
        change = "Its beginning is not JSON: an empty file, a page of HTML, a compressed file, or a path as text."
    elif what.startswith("Expecting property name"):
        change = (
            "A key lacks double quotes: single quotes (a printed Python dictionary), a comment, or a comma too many."
        )
    elif what == "Expecting value" and column == "1" and int(line) == int(found["char"] or 0) + 1:
        change = "There are but empty lines before it: of a file of JSON lines, leave out the empty ones."
    elif what.startswith(("Unterminated", "Expecting ")):
        change = "The file is cut off there (a killed writer, a full disk) or lacks a comma or quote: write it anew."
    else:
        change = "Look at that place: a sign that JSON must escape, NaN, or another encoding."
    return says, change


@FORMS.read_by(
    "unicode_decode",
    r"'(?P<codec>[\w-]{1,20})' codec can't decode bytes? (?P<byte>0x[0-9a-f]{2}) in position "
    r"(?P<position>\d{1,12})",
)
def _unicode(found: re.Match[str], _: Failure) -> tuple[str, str]:
    codec, byte, position = found["codec"], found["byte"], found["position"]
    says = f"Byte {byte} at position {position} is not {codec}."
    if (byte, position) == ("0x8b", "1"):
        return says, "The file is compressed with gzip: open it with gzip.open, or unpack it first."
    if position == "0" and byte in ("0xff", "0xfe"):
        return says, "The file is UTF-16 text, or an image: open it with encoding='utf-16', or as binary."
    return says, (
        "The file is binary (a checkpoint, an archive, Parquet) and is read as text, or has another encoding: try "
        "encoding='cp1252' or 'latin-1'; open(path, 'rb') shows its first bytes."
    )


@FORMS.read_by(
    "checkpoint_not_a_checkpoint",
    r"invalid load key, '(?P<key>\\x[0-9a-f]{2}|[^'\\ ])'",
)
def _pickle(found: re.Match[str], _: Failure) -> tuple[str, str]:
    key = found["key"]
    meanings = {
        "v": "It is the pointer of Git LFS: `git lfs pull` gets the file itself.",
        "<": "It is a page of HTML: the download got an error page or asks for a login.",
        "{": "It is JSON.",
        "P": "It is a zip archive, as torch.save writes: read it with torch.load.",
        "\\x1f": "It is compressed with gzip: open it with gzip.open.",
    }
    return f"The file begins with {key if len(key) > 1 else f'`{key}`'} and is not a pickle.", meanings.get(
        key, "It is cut off, of another format (safetensors, a text file), or was opened as text: download it again."
    )


@FORMS.read_by("path_missing", rf"(?P<what>No such file or directory): {_PATH}")
@FORMS.read_by("is_a_directory", rf"(?P<what>Is a directory): {_PATH}")
@FORMS.read_by("permission_denied", rf"(?P<what>Permission denied): {_PATH}")
def _path(found: re.Match[str], _: Failure) -> tuple[str, str]:
    kind, path = found["what"], found["path"]
    shown = f"`{path}`" if re.fullmatch(r"[\w./\\~:*$={}@-]{1,120}", path) else "The path"
    if kind == "Is a directory":
        return f"{shown} is a folder, and a file is opened.", "Name the file in it, as in os.path.join(folder, name)."
    if kind == "Permission denied":
        return f"{shown} may not be read or written by this user.", (
            "ls -ld on it and its parents as the user of the process, in the container too; or write to a folder that "
            "is yours (output_dir, HF_HOME, TMPDIR). On Windows it may be a folder, or open elsewhere."
        )
    says = f"{shown} does not exist."
    if path.startswith("~"):
        return says, "~ is not expanded by open(): write os.path.expanduser(path) or Path(path).expanduser()."
    if re.search(r"[*$?]|\{\w", path):
        return (
            says,
            "It holds a pattern or variable: glob.glob(path), os.path.expandvars(path), or an f before the text.",
        )
    absolute = path.startswith(("/", "\\")) or path[1:2] == ":"
    return says, (
        ("" if absolute else "It is relative to the working directory: print os.getcwd(), or make it absolute. ")
        + "To read: check its spelling, and that it is on this node and in the container. "
        "To write: make its folder first, os.makedirs(folder, exist_ok=True)."
    )


# Options, keys and fields.


_USAGE = re.compile(r" usage: | \S{1,80}: error: | [EIW]\d{4} \d\d:\d\d:")
"""Where what a parser complains of ends, and what it prints for each process or command begins."""


@FORMS.read_by(
    "vocabulary_size_corpus",
    r"Vocabulary size (?:is )?too high \((?P<size>\d{1,9})\)\. Please set it to a value <= (?P<most>\d{1,9})",
)
def _vocabulary(found: re.Match[str], _: Failure) -> tuple[str, str]:
    size, most = int(found["size"]), int(found["most"])
    return f"A vocabulary of {size:,} pieces is asked for, and the corpus gives at most {most:,}.", (
        f"Set vocab_size to {most:,} or less, or take a larger corpus; hard_vocab_limit=False takes what there is."
    )


@FORMS.read_by(
    "argument_unknown",
    r"error: (?P<what>unrecognized arguments|the following arguments are required): (?P<names>.{1,300})",
    r"(?P<what>are not used by the HfArgumentParser): (?P<names>\[.{1,300}?\])",
)
def _arguments(found: re.Match[str], _: Failure) -> tuple[str, str]:
    complaint = _USAGE.split(found["names"], 1)[0]
    names = list(dict.fromkeys(re.findall(r"(?<![\w-])--?[A-Za-z][\w-]{0,60}", complaint)))
    if found["what"].startswith("the following"):
        names = re.findall(r"[\w/-]{1,60}", complaint)
        return f"The command lacks {listing(names)}.", "Give them on the command line; --help shows what each means."
    values = re.findall(VALUE, complaint)
    if found["what"].endswith("HfArgumentParser"):
        names = names or values
    if not names and values:
        return f"The script has no place for {listing(values)}: no option takes it as its value.", (
            "The option before it takes none, as a switch (action='store_true'), or one only: leave the value out. "
            "If the script is yours and the option is to take it, use argparse.BooleanOptionalAction or nargs."
        )
    return f"The script has no option {listing(names) or 'of this name'}.", (
        "Compare with --help: it is misspelt (- or _), belongs to another script or launcher, or was renamed. For a "
        "script of your own add it with add_argument."
    )


@FORMS.read_by(
    "argument_unknown",
    r"(?P<what>No such option|Unknown command line flag):? (?P<names>'?-{0,2}[\w-]{1,60})",
)
def _flag(found: re.Match[str], _: Failure) -> tuple[str, str]:
    name = found["names"].strip("'-")
    return f"The script has no option `--{name}`.", (
        "Compare with --help: it is misspelt (- or _), belongs to another script, or was renamed. For a script of your "
        "own declare it."
    )


@FORMS.read_by(
    "argument_unknown",
    r"error: argument (?P<name>--?[\w/-]{1,60}): (?:expected (?:one|at least one) argument|"
    r"invalid (?P<kind>\w{1,20}) value: '(?P<value>[^']{0,60})')",
)
def _argument_value(found: re.Match[str], _: Failure) -> tuple[str, str]:
    name, value, kind = found["name"], found["value"], found["kind"]
    if value is None:
        return f"{name} stands on the command line without a value.", f"Write a value behind {name}."
    shown = f"`{value}`" if re.fullmatch(VALUE, value) else "the value"
    return f"{name} takes a value of the type {kind}, and gets {shown}.", (
        f"Write a value of that type; 1e5 and 1.0 are not int. If the script is yours, correct type= of {name}."
    )


@FORMS.read_by(
    "hydra_override",
    rf"Key {QUOTED_NAME} (?:is )?not in (?:struct|'\w{{1,60}}')"
    r"(?: .{0,40}?full_key: (?P<full>[\w.\[\]]{1,120}))?",
)
def _config_key(found: re.Match[str], _: Failure) -> tuple[str, str]:
    name, full = found["name"], found["full"] or found["name"]
    return f"The configuration has no key `{full}`.", (
        f"Compare with the keys of the installed version's configuration: `{name}` is misspelt, renamed or in another "
        f"group. In Hydra +{full}=value adds it; in code OmegaConf.set_struct(cfg, False) allows new keys."
    )


@FORMS.read_by(
    "config_validation",
    r"Value '(?P<value>[^']{0,60})' of type '[\w.]{1,60}' could not be converted to (?P<wanted>\w{1,30})"
    r"(?: full_key: (?P<key>[\w.\[\]]{1,120}))?",
    r"Expected an? <class '(?P<wanted>\w{1,40})'>\. Got value: (?P<value>\S{0,60})",
)
def _unconverted(found: re.Match[str], _: Failure) -> tuple[str, str]:
    names = found.groupdict()
    where = f"`{names['key']}` takes" if names.get("key") else "The setting takes"
    value = f"`{names['value']}`" if re.fullmatch(VALUE, names["value"]) else "a value of another type"
    return f"{where} {with_article(names['wanted'])}, and gets {value}.", (
        "Write such a value where it is set: on the command line, in the configuration, or in code. If the type is "
        "wrong, correct it where the setting is declared."
    )


@FORMS.read_by(
    "argument_kind",
    r"type (?P<kind>\w{1,40}) is incompatible with expected type (?P<wanted>\w{1,40})",
)
def _column_types(found: re.Match[str], _: Failure) -> tuple[str, str]:
    return f"A column or value is {found['kind']} where {found['wanted']} is expected.", (
        f"Cast it before this line, as in pl.col('x').cast(pl.{found['wanted']}) or astype, or give the schema where "
        "the data is read: one table or file holds text or empty values where others hold numbers."
    )


_NUMPY_KIND = re.compile(r"^numpy\.dtypes\.|DType$")


@FORMS.read_by(
    "column_types_mixed",
    r"DType <class '(?P<a>[\w.]{1,60})'> could not be promoted by <class '(?P<b>[\w.]{1,60})'>",
    r"with types dtype\('(?P<a>[^']{1,30})'\) and dtype\('(?P<b>[^']{1,30})'\)",
    r"signature matching types \(dtype\('(?P<a>[^']{1,30})'\), dtype\('(?P<b>[^']{1,30})'\)\)",
    r"cannot compare (?P<a>\w{1,20}) with (?P<b>\w{1,20}) type",
    r"arithmetic on dtypes (?P<a>[\w\[\]]{1,30}) and (?P<b>[\w\[\]]{1,30}) is not allowed",
    r"Invalid comparison between dtype=(?P<a>[\w\[\]]{1,30}) and (?P<b>\w{1,30})",
)
def _kinds_met(found: re.Match[str], _: Failure) -> tuple[str, str]:
    kinds = [_NUMPY_KIND.sub("", found[side]).lower() for side in ("a", "b")]
    kinds = ["text" if re.match(r"<?u\d|str", kind) else re.sub(r"^<?m8", "datetime64", kind) for kind in kinds]
    return f"Data of the types {kinds[0]} and {kinds[1]} meet, and have no common type.", (
        "Print df.dtypes, or .dtype of both. Leave out the column that does not belong, or convert it: dates into "
        "numbers, text into categories or numbers. Cast that one alone: .astype or .cast for the whole table hides it."
    )


@FORMS.read_by(
    "name_unknown",
    r"\b(?:columns?|keys?|fields?|features?|names)\b.{0,60}(?:not found|missing|not in index|do not exist)"
    r"[^\[]{0,20}(?P<names>\[['\"].{1,300}?\])",
)
def _names_missing(found: re.Match[str], _: Failure) -> tuple[str, str] | None:
    names = re.findall(rf"['\"]({VALUE})['\"]", found["names"])
    if not names:
        return None
    return f"Asked for and not there: {listing(names)}.", (
        "Print the names that there are just before this line, and compare spelling, case and spaces. For a text file "
        "look whether its separator (sep=';', '\\t') and its header row were read."
    )


@FORMS.read_by("hydra_override", r"Missing mandatory value: (?P<name>[\w.]{1,120})")
def _config_missing(found: re.Match[str], _: Failure) -> tuple[str, str]:
    return f"`{found['name']}` is marked ??? and has no value.", (
        f"Give it: {found['name']}=value on the command line, or in the configuration."
    )


@FORMS.read_by(
    "config_validation",
    r"validation errors? for (?P<model>[\w.]{1,80}) (?P<name>[\w.\[\]-]{1,80}) (?P<what>[A-Z].{1,300}?) "
    r"\[type=(?P<type>\w{1,60}), input_value=.{0,400}?input_type=(?P<given>\w{1,40})",
)
def _field(found: re.Match[str], _: Failure) -> tuple[str, str]:
    name, what, kind, given = found["name"], found["what"], found["type"], found["given"]
    model = found["model"]
    if kind == "missing":
        return f"{model} requires the field `{name}`, and it is not given.", (
            f"Give {name}; where it was given, check its spelling and its level."
        )
    if kind == "extra_forbidden":
        return f"{model} has no field `{name}`.", (
            "Take it out, or correct its spelling and level; in another version it has another name."
        )
    wanted = _WANTED.match(what)
    return (
        f"The field `{name}` of {model} needs {wanted[1].strip() if wanted else kind}, and got {with_article(given)}.",
        (
            f"Give {name} such a value. In a configuration look for quotes around a number, text for a number, a list "
            "in place of one value, or null."
        ),
    )


_WANTED = re.compile(
    r"Input should be ((?:(?:an? |the )?(?:valid |greater |less |than |or |equal to |(?:integer|number|boolean|string|"
    r"list|dictionary|instance|tuple|set|datetime|date|True|False|None)\b ?|-?\d[\d.]{0,12} ?)){1,8})"
)


# Values that are allowed, and those in bounds: what is general comes last.


MAX_NEAR = 3
"""Names of a similar spelling that are proposed. Chosen."""
MAX_BETWEEN = 12
"""Characters between the values of a list, other than signs: with more they are sentences, not a list. Chosen."""
_IN_QUOTES = re.compile(rf"['\"`‘]({VALUE})['\"`’]")
_OFFER = re.compile(
    r"(?:must|should|has to|have to|needs? to|can) (?:only )?be (?:a str |a string |specified )?"
    r"(?:one of|any of|among|either|in(?= ?[\[({]))|\b[Cc]hoose (?:one )?(?:from|of|between)|"
    r"\bselect (?:one )?(?:from|of)|\b[Oo]ne of\b|not in(?= (?:\[|\(|\{|dict_keys))|Input should be(?= ['\"])|"
    r"\b(?:columns|names|keys|values|options|choices|fields|modes|types)(?: \w{1,20}){0,4}(?: are|:)"
    r"(?= ?(?:[\[({]|['\"]))|"
    r"\b(?:[Vv]alid|[Aa]vailable|[Ss]upported|[Aa]llowed|[Pp]ossible|[Kk]nown|[Aa]ccepted|[Rr]egistered|[Ee]xisting)"
    r"(?: \w{1,20}){0,5}(?: are| is|:)|\boptions(?: are|:)|\b[Cc]andidates(?: are|:)|\b[Ee]xpected(?= ?[\[({])"
)
_GIVEN = re.compile(
    rf"(?:\b[Gg]ot|[Rr]eceived|[Ff]ound|\bgiven|\bwas|\bis|[Ii]nvalid|[Uu]nknown|[Uu]nrecogni[sz]ed|[Uu]nsupported|"
    rf"[Uu]nable to find|[Nn]o such|input_value=|[Cc]ould not find|[Nn]ot find)"
    rf"(?: \w{{1,20}}){{0,4}}?[ :=]{{0,3}}['\"`‘]({VALUE})['\"`’]|"
    rf"['\"`‘]({VALUE})['\"`’] (?:is|was) (?:not|an? (?:invalid|unknown|unsupported))\b|"
    rf"Error: ({VALUE}) is not (?:a valid|in |among|one of|supported|an? )|"
    rf"(?:[Gg]ot|[Uu]nknown|[Ii]nvalid|[Uu]nrecogni[sz]ed|[Uu]nsupported)(?: \w{{1,20}}){{0,3}}?[ :]{{1,2}}"
    rf"(?!an? )({VALUE})(?:[,.;](?: |$)|$)"
)
_SUBJECT = re.compile(
    rf"[Tt]he ['`]({VALUE})['`] (?:parameter|argument|option|field)|argument (--?[\w/-]{{1,60}})|"
    rf"(?:Error: |^)['`]?([a-z_]{{2,60}})['`]? (?:must|should|has to) be"
)


def _first_group(found: re.Match[str] | None) -> str:
    return next((group for group in found.groups() if group), "").rstrip(".,;") if found else ""


def _choices(text: str) -> list[str]:
    """Return the values that a message lists as allowed, behind the words that offer them."""
    offer = _OFFER.search(text)
    if offer is None:
        return []
    rest = text[offer.end() : offer.end() + 1_500]
    opened = re.match(r"[ :]{0,3}(?:\w{1,20} ?)?([\[({<])", rest)
    if opened:
        closing = {"[": "]", "(": ")", "{": "}", "<": ">"}[opened[1]]
        rest = rest[opened.end() :].partition(closing)[0]
    else:
        rest = re.split(r"\. |; |, (?:but |got |not )| (?:but|got|[Gg]iven|instead) |\.$|\[type=", rest)[0]
    words = _IN_QUOTES.findall(rest)
    between = re.sub(
        r"[\s,'\"`\[\](){}|]|\bor\b|\band\b|\bNone\b", "", re.sub(r"['\"][^'\"]{0,60}$", "", _IN_QUOTES.sub("", rest))
    )
    if words and len(between) > MAX_BETWEEN:
        return []
    if not words:
        words = [word for word in re.split(r",\s?(?:or |and )?| or | and |\|", rest.strip(" :")) if word]
        words = words if all(re.fullmatch(VALUE, word) for word in words) else []
    return list(dict.fromkeys(words))


@FORMS.read_by("setting_out_of_range")
def _allowed(found: re.Match[str], _: Failure) -> tuple[str, str] | None:
    text = found.string
    choices = _choices(text)
    if len(choices) < 2:
        return None
    offer = _OFFER.search(text)
    outside = text if offer is None else f"{text[: offer.start()]}  {text[offer.end() :]}"
    given = next(
        (word for given_match in _GIVEN.finditer(outside) if (word := _first_group(given_match)) not in choices), ""
    )
    subject = _first_group(_SUBJECT.search(text))
    if not given and not subject:
        return None
    if given in KINDS and any(choice in KINDS for choice in choices):
        return f"The call takes {listing(choices)}, and gets {with_article(given)}.", f"{origin_of(given)}."
    near = nearest(given, choices, most=MAX_NEAR)
    what = f"{subject}: " if subject and subject != given else ""
    says = f"{what}`{given}` is not one of " if given else f"{what}a value is not one of "
    change = f"Take one of these; spelt alike: {listing(near)}." if near else "Take one of these values."
    return f"{says}{listing(choices)}.", (
        f"{change} Where an example or an old configuration has the other one, it was renamed or removed, or is newer "
        "than the installed version."
    )


_BOUND_WORDS = (
    "an?", "the", "of", "in", "between", "and", "or", "to", "than", "equal", "range", "interval", "greater", "larger",
    "less", "smaller", "more", "at", "least", "most", "strictly", "positive", "non-?negative", "integer", "number",
    "float", "int", "fraction", "value", "divisible", "by", "multiple",
)  # fmt: skip
"""Words in which a message says what a number has to be."""


@FORMS.read_by(
    "setting_out_of_range",
    r"\b(?P<name>[A-Za-z_][\w.]{1,60}|(?<=[`'])[A-Za-z](?=[`']))['`]? (?:\w{1,20} )?"
    r"(?:must|should|has to|have to|needs? to) (?:be )?"
    rf"(?P<wanted>(?:(?:(?:{'|'.join(_BOUND_WORDS)})\b|[<>]=?|[\[(]-?[\d.]{{1,12}}, ?(?:-?[\d.]{{1,12}}|inf)[\])]|"
    r"-?\d{1,12}+(?:\.\d{1,12}+)?(?:e-?\d{1,3}+)?) ?){1,9})[,.;:]? (?:but )?"
    r"(?:the (?:\w{1,20} )?value (?:passed |given )?)?(?:[Gg]ot|is|was|found|received|given)(?: value)?:? "
    r"(?:\w{1,40} ?= ?)?"
    r"(?P<value>-?\d[\d.e+-]{0,20}|None|True|False)",
)
def _out_of_range(found: re.Match[str], _: Failure) -> tuple[str, str] | None:
    name, wanted, value = found["name"], found["wanted"].strip(" ,."), found["value"].rstrip(".,")
    return f"`{name}` has to be {wanted}, and is {value}.", (
        "Set it as the message asks where it is passed, or in the configuration. Where it is computed, print what it "
        "is computed from: a percentage for a fraction, a count of zero, a division that rounds down."
    )


@FORMS.read_by(
    "sizes_disagree",
    r"\(?(?P<a>\d{1,12})\)? (?:must be|should be|is not|not|has to be) (?:evenly )?(?:divisible by|a multiple of) "
    r"(?:[\w.`]{1,40} ){0,7}?\(?(?P<b>\d{1,9})\b",
    r"can't divide axis of length (?P<a>\d{1,12}) in chunks of (?P<b>\d{1,9})",
)
def _indivisible(found: re.Match[str], _: Failure) -> tuple[str, str] | None:
    a, b = int(found["a"]), int(found["b"])
    if b == 0 or a % b == 0:
        return None
    of_layer = re.search(r"channel|head|group|hidden|embed", found.string)
    rest = (
        "Or let the layer before it give such a number." if of_layer else "Or pad the data up to one, or drop the rest."
    )
    one_more = a > b and (a - 1) % b == 0 and not of_layer
    token = f" {a - 1:,} is one: a class token, or another entry too many, may be left at one end." if one_more else ""
    return f"{a:,} is not a multiple of {b:,}.{token}", (
        f"Change the one that is free: {a - a % b:,} and {a - a % b + b:,} are multiples of {b:,}. {rest}"
    )


@FORMS.read_by("python_assert", r"^AssertionError\W{0,3}$")
def _asserted(_: re.Match[str], failure: Failure) -> tuple[str, str] | None:
    """Read the line of code of an assertion that has no words of its own."""
    code = failure.frames[-1].code if failure.frames else ""
    test = _assertion(code)
    if test is None:
        return None

    def written(part: ast.expr) -> str:
        return f"`{ast.get_source_segment(code, part)}`"

    match test:
        case ast.Compare(ast.BinOp(a, ast.Mod(), b), [ast.Eq()], [ast.Constant(0)]):
            return f"{written(a)} is not a multiple of {written(b)}.", (
                "Print both, and change the one that is free. Where a product or a share is asserted, so are its "
                "parts: batches, environments times steps, heads, ranks."
            )
        case ast.Compare(ast.Call(ast.Name("len"), [a]), [ast.Gt() | ast.NotEq()], [ast.Constant(0)]) | ast.Compare(
            ast.Call(ast.Name("len"), [a]), [ast.GtE()], [ast.Constant(1)]
        ):
            return f"{written(a)} is empty.", (
                "Follow it to where it is filled: a path or pattern that matches no file, a filter that leaves "
                "nothing, or a mode in which nobody fills it."
            )
        case ast.Call(ast.Name("isinstance"), [a, b]):
            return f"{written(a)} is not of the type {written(b)}.", (
                "Print type() of it, and pass what the code takes, or the version of the library that takes it."
            )
        case ast.Name() | ast.Attribute() | ast.Subscript():
            return f"{written(test)} is None, False, zero or empty.", (
                "Print it there, and follow it to where it is set: a setting that is not given, or something not found."
            )
    return f"It does not hold that {written(test)}.", (
        "Print its parts there, and follow the one that surprises you to where it is set."
    )


def _assertion(code: str) -> ast.expr | None:
    """Return what a line of code asserts; None where it may be cut off, asserts a constant or holds a sentence."""
    if len(code) >= MAX_CODE or "\\" in code:  # Python warns of some escapes
        return None
    try:
        statements = ast.parse(code).body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None
    match statements:
        case [ast.Assert(test)] if not isinstance(test, ast.Constant) and not any(map(_is_sentence, ast.walk(test))):
            return test
    return None


def _is_sentence(part: ast.AST) -> bool:
    """Return whether a part of code is text that is not a name."""
    return (
        isinstance(part, ast.Constant)
        and isinstance(part.value, str | bytes)
        and not (re.fullmatch(rf"(?:{VALUE})?", str(part.value)))
    )


# Shapes and sizes: both are stated.


# Arrays: two shapes, sizes, types of numbers or devices that do not fit.


LONGEST_RATIO = 64
"""The largest whole ratio of two sizes that reads like merged dimensions. Chosen: pixels of a patch, frames."""
_SHAPE = re.compile(
    r"(?:torch\.Size\()?(?<![\w.])[\[(]((?:\d{1,9}|None|-1)(?:, ?(?:\d{1,9}|None|-1)){1,9}|"
    r"(?:\d{1,9}|None)(?=,\)|\])),?[\])]|\b(\d{1,9}(?:x\d{1,9}){1,9})\b"
)
_OF_PRODUCT = re.compile(r"multipl|contract|matmul|\bmat1\b|\bm1\b|dot_general|not aligned|core dimension")
_COUNTERPART = (
    "Print both shapes just before this line, and find out which one is as you meant it. A batch size such as 7 makes "
    "it easy to recognise among the dimensions."
)


def _shape_text(shape: tuple[str, ...]) -> str:
    return f"[{', '.join(shape)}]"


_NO_SHAPE = re.compile(
    r"(?:padding|strides?|kernel\w{0,8}|dilation|output_size|dims?|dimensions?|ax[ei]s|ind(?:ex|ices))[ =:]{1,3}$"
)
"""What stands before numbers that are no shape."""


def _of_product(left: tuple[str, ...], right: tuple[str, ...]) -> str:
    inner, wanted = left[-1], right[-2]
    if inner == right[-1]:
        return f"Transpose the second, whose other size is {inner}; or the first, if that one is turned."
    return (
        f"If the input is as meant, make the layer for it: its input size is {wanted} and has to be {inner}. "
        f"If the layer is as meant, find where the input became {inner} wide. {_reason(inner, wanted)}"
    ).strip()


def _reason(a: str, b: str) -> str:
    """Return what two sizes suggest by their difference or ratio; "" where nothing does."""
    if not (a.isdigit() and b.isdigit()) or "0" in (a, b):
        return ""
    low, high = sorted((int(a), int(b)))
    if low == 1:
        return "One size is 1: a channel or output that is single, or a dimension that was kept or added."
    if high - low == 1:
        return "They differ by one: a shift of labels, a special token, a class for background, or an end that counts."
    if high % low == 0 and high // low <= LONGEST_RATIO:
        return f"One is {high // low} times the other: dimensions merged or parted by a reshape, or a factor set twice."
    return ""


def _hint(a: str, b: str, *, first: bool = False) -> str:
    if first:
        return (
            "The first dimension is the batch or the number of rows: both have to come from the same rows. Look for a "
            "filter, a shift or a reshape on one side alone, or a last batch that is smaller. " + _reason(a, b)
        ).strip()
    decide = f"Decide which of {a} and {b} is meant, and change the layer or data that makes the other one. "
    return (decide + _reason(a, b)).strip()


@FORMS.read_by(
    "operator_shapes",
    r"size of tensor a \((?P<a>\d{1,12})\) must match the size of tensor b \((?P<b>\d{1,12})\)"
    r"(?: at non-singleton dimension (?P<dim>\d{1,3}))?",
    r"expanded size of the tensor \((?P<a>\d{1,12})\) must match the existing size \((?P<b>\d{1,12})\)"
    r"(?: at non-singleton dimension (?P<dim>\d{1,3}))?",
    r"Expected size (?P<a>\d{1,12}) but got size (?P<b>\d{1,12})",
    r"to have value (?P<a>\d{1,12}), but received input with shape \((?:\w{1,12}, ?){1,9}(?P<b>\d{1,12})\)",
    r"contracting dimensions to have the same shape, got \((?P<a>\d{1,12}),\) and \((?P<b>\d{1,12}),\)",
)
def _two_sizes(found: re.Match[str], _: Failure) -> tuple[str, str] | None:
    names = found.groupdict()
    a, b = names["a"], names["b"]
    if a == b:
        return None
    where = f" in dimension {names['dim']}" if names.get("dim") else ""
    return f"Two sizes have to be equal{where}, and are {a} and {b}.", _hint(a, b) + " " + _COUNTERPART


@FORMS.read_by(
    "sizes_disagree",
    r"X has (?P<a>\d{1,9}) features?, but \w{1,80} is expecting (?P<b>\d{1,9})",
    r"to have (?P<b>\d{1,9}) channels?, but got (?P<a>\d{1,9}) channels?",
)
def _features(found: re.Match[str], _: Failure) -> tuple[str, str]:
    got, expected = found["a"], found["b"]
    return f"The data has {got} features or channels, and the model was made for {expected}.", (
        f"Give the {expected} that were there at training, in the same order; save the list of columns with the model. "
        f"If {got} is right, build or fit the model for it. {_reason(got, expected)}"
    ).strip()


@FORMS.read_by(
    "sizes_disagree",
    r"shape '(?P<shape>\[[-\d, ]{1,100}\])' is invalid for input of size (?P<size>\d{1,15})",
)
def _reshaping(found: re.Match[str], _: Failure) -> tuple[str, str] | None:
    wanted, size = [int(digits) for digits in re.findall(r"-?\d+", found["shape"])], int(found["size"])
    product = 1
    for dimension in wanted:
        product *= dimension if dimension > 0 else 1
    says = f"{size:,} values cannot fill the shape {_shape_text(tuple(map(str, wanted)))}"
    if -1 in wanted:
        says += f": {product:,} does not divide {size:,}."
    else:
        says += f", which holds {product:,}."
    return says, (
        "Print the shape before it: a last batch that is smaller, images of another size, or a number that is written "
        "out. Write x.size(0) for the batch and -1 for one dimension that follows."
    )


@FORMS.read_by(
    "samples_inconsistent",
    r"inconsistent numbers? of samples: (?P<sizes>\[.{1,200}?\])",
)
@FORMS.read_by(
    "sizes_disagree",
    r"Length of values (?P<sizes>\(\d{1,12}\) does not match length of index \(\d{1,12}\))",
    r"(?P<sizes>batch_size \(\d{1,12}\) to match target batch_size \(\d{1,12}\))",
)
def _lengths(found: re.Match[str], _: Failure) -> tuple[str, str] | None:
    sizes = re.findall(r"\d{1,12}", found["sizes"])
    if len(set(sizes)) < 2:
        return None
    return f"The inputs have {' and '.join(sizes[:4])} rows.", (
        "Both have to come from the same rows: look for a filter, dropna, shift or split that was done on one side "
        f"alone, and for inputs that are turned (rows and columns). {_reason(*sizes[:2])}"
    ).strip()


_RELATION = (
    r"match|\b(?:the )?same\b|incompatible|broadcast|multipl|contract|aligned|differ|inconsistent|not equal|"
    r"(?:[Ee]xpected|expects|should be|must be|to have|to be) .{0,120}(?:got|found|received|is|has)\b|compatible with|"
    r"concatenat|no larger|but should be"
)
"""Words that put two shapes into relation."""


@FORMS.read_by("operator_shapes", context=_RELATION)
def _two_shapes(found: re.Match[str], _: Failure) -> tuple[str, str] | None:
    text = found.string
    shapes = [
        tuple(re.findall(r"\d+|None|-1", shape_match[1] or shape_match[2]))
        for shape_match in _SHAPE.finditer(text)
        if not _NO_SHAPE.search(text[max(0, shape_match.start() - 24) : shape_match.start()])
    ]
    shapes = [shape for at, shape in enumerate(shapes) if shape not in shapes[:at]]
    if len(shapes) != 2:
        return None
    left, right = shapes
    says = f"The shapes are {_shape_text(left)} and {_shape_text(right)}"
    if _OF_PRODUCT.search(text) and len(right) > 1 and left[-1] != right[-2]:
        return f"{says}: the inner sizes {left[-1]} and {right[-2]} have to be equal.", _of_product(left, right)
    if len(left) != len(right):
        counts = f"{len(left)} and {len(right)} dimensions"
        return f"{says}: {counts}.", (
            "Add or take away a dimension where the smaller one is made: unsqueeze or x[None] for a missing batch or "
            f"channel, squeeze for one of size 1, flatten or a mean over what is too much. {_COUNTERPART}"
        )
    different = [(at, a, b) for at, (a, b) in enumerate(zip(left, right, strict=True)) if a != b]
    if "broadcast" in text:
        different = [dimension for dimension in different if "1" not in dimension[1:]] or different
    named = ", ".join(f"dimension {at} ({a} and {b})" for at, a, b in different[:3])
    if sorted(left) == sorted(right):
        return f"{says}: the same sizes in another order.", (
            "Transpose or permute one of the two where it is made (images as channels first or last, batch first or "
            "time first); do not reshape it, which would mix the values."
        )
    if len(different) == 1:
        return f"{says}: they differ in {named}.", _hint(
            different[0][1], different[0][2], first=different[0][0] == 0 and len(left) > 1
        )
    return f"{says}: they differ in {named}.", _COUNTERPART


# Types of numbers and devices: both are stated.


_ALIASES = {
    "double": "float64", "float": "float32", "half": "float16", "long": "int64", "int": "int32", "short": "int16",
    "byte": "uint8", "char": "int8", "bfloat16": "bfloat16", "bool": "bool",
}  # fmt: skip
_DTYPE = re.compile(
    r"\b(?:torch\.|c10::|tf\.|np\.|numpy\.|jnp\.)?(?:cuda\.)?(?:"
    r"(float(?:16|32|64)|bfloat16|u?int(?:8|16|32|64)|complex(?:64|128))|"
    r"(?:c10::)?(Double|Float|Half|Long|Int|Short|Byte|Char|BFloat16|Bool)(?:Tensor)?|"
    r"(?<=\()(double|float|half|long int|long|int|unsigned char|bool|c10::BFloat16|c10::Half)(?=\)))\b"
)
_DEVICE = re.compile(r"\b(cuda(?::\d{1,3})?|cpu|mps(?::\d{1,2})?|xpu(?::\d{1,2})?)\b|\btorch\.(cuda)\.\w{1,20}Tensor")


def _dtypes_of(text: str) -> list[str]:
    """Return the types of numbers that a message names, by their names in PyTorch and NumPy."""
    names = []
    for found in _DTYPE.finditer(text):
        name = (found[1] or found[2] or found[3]).lower().replace("c10::", "").replace("long int", "long")
        names.append(_ALIASES.get(name.replace("unsigned char", "byte"), name))
    return list(dict.fromkeys(names))


_ALTERNATIVES = re.compile(r"int32 ?(?:or|/) ?int64|(?i:long or int|int or long|one of)|types are|only support")
"""Types that a message offers, not those that meet."""


@FORMS.read_by(
    "same_device",
    context=r"(?:same|expected|different) devices?\b|should be the same|device type|is on",
)
def _devices(found: re.Match[str], _: Failure) -> tuple[str, str] | None:
    names = list(dict.fromkeys(device_match[1] or device_match[2] for device_match in _DEVICE.finditer(found.string)))
    if "cuda" in names and "cpu" not in names and "FloatTensor)" in found.string:
        names.append("cpu")
    if len(names) != 2:
        return None
    return f"One tensor is on {names[0]}, another on {names[1]}.", (
        "Move both to one device just before this line, x = x.to(model.device): the batch, the labels, and tensors "
        "made in forward (device=x.device). A constant of the model belongs into register_buffer."
    )


_TYPE_WORDS = (
    r"same dtype|(?:data|scalar|d)[ _]?type|Input type|should be the same|[Ee]xpected|must have|must be|promote"
)


@FORMS.read_by("operator_types", context=_TYPE_WORDS)
def _types(found: re.Match[str], _: Failure) -> tuple[str, str] | None:
    names = _dtypes_of(found.string)
    if len(names) != 2 or _ALTERNATIVES.search(found.string):
        return None
    both, says = set(names), f"{names[0]} and {names[1]} meet."
    if both == {"float32", "float64"}:
        change = (
            "float64 comes from NumPy or pandas: make the data float32 where it is read, x.float() or "
            "array.astype('float32'). The model stays in float32."
        )
    elif both <= {"float16", "bfloat16", "float32", "float64"}:
        change = (
            "The model and what enters it are of different precision: run both under torch.autocast, or give the input "
            "as x.to(model.dtype). Look for a part that was cast, loaded or made alone."
        )
    elif names[1] in ("float32", "float64", "float16", "bfloat16") and "int64" in both:
        change = (
            "Whole numbers are asked for where fractions come, or the reverse: class labels and ids need .long(), "
            "features and regression targets .float(). A loss for classes takes labels, not one-hot."
        )
    else:
        change = "Cast at one place: .long() for labels and ids, .float() for features and targets, .bool() for masks."
    return says, change
