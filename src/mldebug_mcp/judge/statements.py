"""What an error message says itself: which argument, attribute, value, shape or type is wrong, and what to change.

An entry of `errors.jsonl` holds one text for all messages that it fits. Here the values of a message are put into the
explanation: names, allowed values, both shapes. Only names without spaces, numbers and shapes are taken over. So what
a log says reaches the explanation as data, never as a sentence. This is a form of messages, and what readers of several
forms share.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from keyword import iskeyword
from typing import TypeVar

from mldebug_mcp.core.text import capitalised, nearest
from mldebug_mcp.logs.failures import MAX_CODE, Failure

MAX_LISTED = 8
"""Allowed values that are named; the others are counted. Chosen: one line."""


@dataclass(frozen=True, slots=True)
class Statement:
    """What one message says: its entry of `errors.jsonl`, what is wrong with its values, and what to change."""

    id: str
    says: str
    change: str


Reader = Callable[[re.Match[str], Failure], tuple[str, str] | None]
"""What reads the values of a match: what is wrong and what to change; None where it is another message."""
AnyReader = TypeVar("AnyReader", bound=Reader)


@dataclass(frozen=True, slots=True)
class Form:
    """Messages of one wording: their entry of `errors.jsonl`, what finds values, what else they hold, their reader."""

    entry: str
    pattern: re.Pattern[str]
    context: re.Pattern[str]
    read: Reader


class Forms(list[Form]):
    """Forms in order, to which a reader adds those that it reads."""

    def read_by(self, entry: str, *patterns: str, context: str = "") -> Callable[[AnyReader], AnyReader]:
        """Return the decorator of a reader.

        Args:
            entry: The entry of `errors.jsonl`.
            patterns: What finds the values, one for each wording; none where the reader finds them itself.
            context: What else the message has to hold.
        """

        def add(read: AnyReader) -> AnyReader:
            self.extend(Form(entry, re.compile(pattern), re.compile(context), read) for pattern in patterns or ("",))
            return read

        return add


# Who wrote what the message is about: the code of the user's own line and the library of the last frame show it.


_LIBRARY = re.compile(r"(?:site|dist)-packages[/\\]([\w-]{1,40}?)(?:-(\d[\d.]{0,20}\d))?(?:-py[^/\\]{0,40})?[/\\]")


def users_line(failure: Failure) -> str:
    """Return the code of the user's line; "" without one."""
    return failure.user_frame.code if failure.user_frame else ""


def library_of(failure: Failure) -> str:
    """Return the library of the last frame, with its version where its path names one; "" for the user's own code."""
    found = _LIBRARY.search(failure.frames[-1].file) if failure.frames else None
    return " ".join(filter(None, found.groups())) if found else ""


def is_users(failure: Failure) -> bool:
    """Return whether the last frame is the user's; True without frames, as nothing says otherwise."""
    return not failure.frames or failure.frames[-1].is_users


# Values and kinds of objects in words.


KINDS: Mapping[str, str] = {
    "list": "It is a list: take the element that is meant, or turn it into a tensor or array",
    "tuple": "It is a tuple: a function or data set returns several values; unpack them or take one by its index",
    "str": "It is text: a name or path that was not loaded, a key of a dictionary, or a value of a configuration",
    "dict": "It is a dictionary: take its value by key, x['name']",
    "set": "It is a set: turn it into a list first",
    "int": "It is a whole number: a count, index or id stands where an object is expected",
    "float": "It is a plain number: .item() was taken already, or a missing value (nan) stands where text is expected",
    "bool": "It is True or False: a comparison or a switch stands where an object is expected",
    "numpy.ndarray": "It is a NumPy array: torch.from_numpy(x) makes a tensor of it",
    "Tensor": "It is a tensor: x.detach().cpu().numpy() makes an array of it, x.item() a number",
    "function": "It is a function: the brackets () that call it are missing",
    "method": "It is a method: the brackets () that call it are missing",
    "builtin_function_or_method": "It is a function: the brackets () that call it are missing",
    "type": "It is a class: the brackets () that make an instance of it are missing",
    "generator": "It is a generator: list(x) makes a list of it",
    "module": "It is a module: import the class or function from it, or write module.name",
    "DataLoader": "It is a loader: loop over it, or take next(iter(loader))",
    "DictConfig": "It is a configuration: OmegaConf.to_container(cfg, resolve=True) makes a dictionary of it",
}
"""A type → what to do where another object was expected."""


def origin_of(type_name: str) -> str:
    """Return where an object of a type usually comes from, and what to do."""
    return KINDS.get(type_name, f"Print type() of it one line above, and look where a {type_name} comes from")


def with_article(kind: str) -> str:
    """Return a word with its article."""
    return f"an {kind}" if kind[:1].lower() in "aeio" else f"a {kind}"


VALUE = r"[\w.+*/:@-]{1,60}"
QUOTED_NAME = r"['\"`](?P<name>[\w./-]{1,80})['\"`]"


def listing(names: list[str]) -> str:
    """Return names in quotes, at most eight; the others are counted."""
    shown = ", ".join(f"`{name}`" for name in names[:MAX_LISTED])
    return shown + (f" and {len(names) - MAX_LISTED} more" if len(names) > MAX_LISTED else "")


# What messages of Python say: calls that a signature does not take, kinds of objects, names that are not there.


FORMS = Forms()
"""The first that fits, and that can be read, counts: forms of fewer messages stand above those of more."""

# Calls that a signature does not take.


UNNAMED = "The function"
"""What is called, where the message does not name it."""
_CALL = r"(?:(?P<call>[\w.<>]{1,160})\(\) )?"
_NEAR = r"(?:\.? Did you mean:? '(?P<near>\w{1,60})'\?)?"


def _proposed(found: re.Match[str]) -> str:
    """Return the question after the name that Python itself proposes; "" where it proposes none."""
    near = found.groupdict().get("near")
    return f"Did you mean `{near}`? " if near else ""


def _help(callee: str) -> str:
    """Return what prints a signature."""
    return f"help({callee})" if callee != UNNAMED else "its signature"


def _callee(name: str | None) -> str:
    """Return what is called, in words: a class for its constructor."""
    bare = (name or "").rpartition("<locals>.")[2]
    owner, _, method = bare.rpartition(".")
    if method in ("__init__", "__new__"):
        return owner.rpartition(".")[2] or UNNAMED
    return f"{owner}.{method}" if owner else method or UNNAMED


@FORMS.read_by(
    "python_call",
    rf"{_CALL}got an unexpected keyword argument '(?P<name>\w{{1,60}})'{_NEAR}",
    r"'(?P<name>\w{1,60})' is an invalid keyword argument for (?:this function|(?P<call>\w{1,60}))",
)
def _unknown_argument(found: re.Match[str], failure: Failure) -> tuple[str, str]:
    name, callee, code = found["name"], _callee(found["call"]), users_line(failure)
    if re.search(rf"\b{name}\s?=", code) or (not failure.frames):
        change = (
            f"Your call passes `{name}`: take the name that {_help(callee)} shows, or leave it out. "
            "It belongs to another class or library, or was renamed, removed or added in another version."
        )
    elif "**" in code:
        change = (
            f"`{name}` comes from the dictionary that your line unpacks with **. Drop it there, as a column or key "
            f"that {callee} does not use, or add it to the signature if {callee} is your own."
        )
    else:
        change = (
            f"If {callee} is your own code, add `{name}` or **kwargs to its signature: its caller passes it. "
            f"If not, look where `{name}` enters: keywords that your line passes on, a saved configuration, or two "
            "libraries of different ages."
        )
    return f"{callee} takes no argument `{name}`.", _proposed(found) + change


@FORMS.read_by(
    "python_call",
    rf"{_CALL}missing (?:\d{{1,3}} required (?:positional|keyword-only) arguments?|a required (?:keyword-only )?"
    r"argument|required argument): (?P<names>'\w{1,60}'.{0,400})",
)
def _missing_argument(found: re.Match[str], failure: Failure) -> tuple[str, str]:
    callee, names = _callee(found["call"]), re.findall(r"'(\w{1,60})'", found["names"])
    listed = listing(names)
    says = f"{callee} is called without {listed}, which it requires."
    is_on_class = "." in callee and re.search(rf"\b{re.escape(callee)}\(", users_line(failure))
    if names[:1] == ["self"] or is_on_class:
        return says, (
            f"{callee} is called on the class, so that the first value takes the place of self. "
            "Make an instance first, x = Class(...), and call it on that."
        )
    if not is_users(failure):
        library = library_of(failure) or "the library"
        return says, (
            f"The call comes from {library}. If {callee} is your own, give {listed} a default or take over the "
            f"signature that {library} calls. If not, pass it where your own line sets this up."
        )
    return says, (
        f"Pass {listed} in that call; {_help(callee)} shows what is meant. "
        "If it was given, look whether it went into another parameter or whether the brackets are in the right place."
    )


@FORMS.read_by(
    "python_call",
    rf"{_CALL}takes (?:at most |exactly |from \d{{1,3}} to )?(?P<taken>\w{{1,6}}) (?:positional )?arguments? "
    r"(?:but |\()(?P<given>\d{1,4})",
)
def _too_many(found: re.Match[str], failure: Failure) -> tuple[str, str]:
    callee, taken, given = _callee(found["call"]), found["taken"], found["given"]
    is_method = "." in (found["call"] or "").rpartition("<locals>.")[2] or "__init__" in (found["call"] or "")
    counted = " The object itself counts as one of them." if is_method else ""
    own = (
        f"Give the surplus by name, as name=value, where {callee} has such a keyword; else take it out of the call."
        if is_users(failure)
        else f"The call comes from {library_of(failure) or 'a library'}: take over the signature that it calls."
    )
    self = f" If {callee} is your own, look whether its definition lacks self or a parameter." if is_method else ""
    return f"{callee} takes {taken} by position and is given {given}.{counted}", own + self


@FORMS.read_by(
    "python_call",
    rf"{_CALL}got multiple values for (?:keyword )?argument '(?P<name>\w{{1,60}})'",
)
def _twice(found: re.Match[str], _: Failure) -> tuple[str, str]:
    name, callee = found["name"], _callee(found["call"])
    return f"{callee} is given `{name}` twice.", (
        f"Give `{name}` once: by its position, by its name, or in the dictionary unpacked with **. "
        "Where a method is your own, look whether its definition lacks self, so that the object takes its place."
    )


# Objects of another kind than the code expects.


_OPENED_BY = {"]": "[", ")": "("}
LONGEST_HOLDER = 60
"""Characters of an expression that is named in an advice. Chosen: half a line."""


def _expression_before(code: str, what: str) -> str:
    """Return the expression that ends where some text begins: `self.rows[i]` before `["text"]`.

    "" where none stands there, or different ones do; also where a call is in it, as doing that again may give another
    value, and where it is long.
    """
    holders = {_ending_at(code, found.start()) for found in re.finditer(what, code)} - {""}
    holder = holders.pop() if len(holders) == 1 else ""
    return "" if "(" in holder or len(holder) > LONGEST_HOLDER else holder


def _ending_at(code: str, stop: int) -> str:
    """Return the names, attributes, indices and calls before a place in a line; "" for a keyword or nothing."""
    start = stop
    while start:
        if (last := code[start - 1]) in _OPENED_BY:
            start = _opening(code, start - 1)
        elif re.match(r"[\w.]", last):
            start -= 1
        else:
            break
    found = code[start:stop]
    return found if re.match(r"[A-Za-z_]", found) and not iskeyword(found) else ""


def _opening(code: str, closing: int) -> int:
    """Return the place of the bracket that a closing one belongs to; 0 where the line does not show it."""
    depth = 0
    for place in range(closing, -1, -1):
        depth += (code[place] in _OPENED_BY) - (code[place] in "[(")
        if not depth:
            return place
    return 0


@FORMS.read_by(
    "python_none",
    r"'NoneType' object has no attribute '(?P<name>\w{1,60})'",
    r"'NoneType' object (?:is not|isn't|does not) .{0,40}|(?:argument|object) of type 'NoneType' .{0,40}|"
    r"cannot unpack non-iterable NoneType",
)
def _none(found: re.Match[str], failure: Failure) -> tuple[str, str]:
    use = found[0]
    name = found.groupdict().get("name")
    what = rf"\.{name}\b" if name else r"\[" if "subscript" in use else r"\(" if "callable" in use else r"\Z(?!)"
    subject = _expression_before(users_line(failure), what)
    says = f"A value is None where {f'`.{name}` of it is used' if name else 'an object is expected'}."
    if subject:
        says += f" In your own line see `{subject}`."
    return says, (
        "Print it one line above, and follow it to where it became None. It may be the result of a function without "
        "return, or an argument that was not given. It may also be a key, a file or a column that was not found."
    )


@FORMS.read_by(
    "python_attribute",
    r"(?:(?P<module>(?:partially initialized )?module) |type object )?'(?P<owner>[\w.]{1,80})' (?:object )?"
    rf"has no attribute '(?P<name>\w{{1,60}})'{_NEAR}",
)
def _attribute(found: re.Match[str], failure: Failure) -> tuple[str, str] | None:
    owner, name, code = found["owner"], found["name"], users_line(failure)
    if owner == "NoneType":
        return None
    says = f"An object of the class {owner} has no attribute `{name}`."
    if owner in KINDS:
        says, change = f"{capitalised(with_article(owner))} has no attribute `{name}`.", f"{origin_of(owner)}."
    elif found["module"]:
        says = f"The module {owner} has no `{name}`."
        package, _, last = owner.rpartition(".")
        change = (
            f"If `{name}` is of an older or newer {package or last}, look in its release notes for what took its "
            f"place, or pin the version. Check too that no file of yours is called {last}.py, and whether "
            f"`import {owner}.{name}` is needed."
        )
    elif owner.endswith("Output") or "ModelOutput" in owner:
        change = (
            f"Print its keys(). It is the result of a model that makes no {name}: take the model class with the "
            "head for the task, or ask for it in the call (labels=, output_hidden_states=True)."
        )
    elif re.search(rf"\bself\.{name}\b", code):
        change = (
            f"If {owner} is your own class, set self.{name} in __init__ before this line. Call super().__init__() "
            "first and check the spelling."
        )
    elif failure.frames and not re.search(rf"\b{name}\b", code) and not is_users(failure):
        change = (
            f"{library_of(failure) or 'A library'} asks for it, not your line. Either an object of yours is of another "
            "type than it expects, or the versions of two libraries do not fit."
        )
    else:
        change = (
            "Look for it in dir(x): the name is misspelt, belongs to another library or was renamed in another version "
            "of it. Or x is another object than meant: an inner or wrapped one (x.module), a result, a class."
        )
    return says, _proposed(found) + change


@FORMS.read_by(
    "python_kind",
    r"unsupported operand type\(s\) for (?P<operator>[^ ]{1,12}?)(?: or pow\(\))?: '(?P<left>[\w.]{1,60})' and "
    r"'(?P<right>[\w.]{1,60})'",
    r"'(?P<operator>[<>=!]{1,2})' not supported between instances of '(?P<left>[\w.]{1,60})' and "
    r"'(?P<right>[\w.]{1,60})'",
)
def _operands(found: re.Match[str], _: Failure) -> tuple[str, str]:
    operator, left, right = found["operator"], found["left"], found["right"]
    types = {left, right}
    says = f"`{operator}` gets {with_article(left)} and {with_article(right)}."
    if "NoneType" in types:
        return says, (
            "One side is None: a setting or argument that was not given, a function without return, or a metric that "
            "was not computed. Print both sides and give the missing one a value."
        )
    if "str" in types:
        return says, (
            "One side is text that should be a number: YAML reads 1e-4 as text (write 1.0e-4), argparse needs "
            "type=float, a CSV column was not converted. Convert it where it is read: float(x), int(x)."
        )
    if types & {"method", "function", "builtin_function_or_method"}:
        return says, "The brackets () of a call are missing on one side: write x() instead of x."
    if types & {"list", "tuple", "dict", "set"}:
        return says, (
            "Turn the container into a tensor or array first, or take the element that is meant. A function that "
            "returns several values gives a tuple: unpack it."
        )
    return says, "Print type() of both sides, and convert the one that is of the wrong kind where it is made."


@FORMS.read_by(
    "python_kind",
    r"(?:argument of type )?'(?P<kind>[\w.]{1,60})' (?:object )?is "
    r"(?P<what>not (?:callable|subscriptable|iterable|reversible|an iterator))",
    r"cannot unpack (?P<what>non-iterable) (?P<kind>[\w.]{1,60}) object",
    r"'(?P<kind>[\w.]{1,60})' object (?P<what>does not support item assignment|doesn't support item deletion)",
    r"object of type '(?P<kind>[\w.]{1,60})' (?P<what>has no len\(\))",
)
def _unable(found: re.Match[str], failure: Failure) -> tuple[str, str] | None:
    kind, what = found["kind"], found["what"].replace("non-iterable", "not iterable")
    if kind == "NoneType":
        return None
    says = f"{capitalised(with_article(kind))} {'is ' if what.startswith('not ') else ''}{what}."
    if what == "not callable":
        subject = _expression_before(users_line(failure), r"\(") if is_users(failure) else ""
        return says, (
            f"Brackets () call something that is {with_article(kind)}. {_CALLED.get(kind, _CALLED[''])}"
            + (f" In your own line look at `{subject}`." if subject else "")
        )
    if kind == "int" and "iterable" in what:
        return says, "Loop over range(n), or give a list where one number was given, such as [x] for x."
    return says, f"{origin_of(kind)}."


_CALLED = {
    "module": "Import the class from the module, or write module.name().",
    "str": "A variable has the name of a function, a name of a function is text of a configuration, or a comma lacks.",
    "Tensor": "A tensor has the name of a function or layer (loss = loss(...)), or it is a property without brackets.",
    "": "A variable has the name of a function, a property or result is called like a method, or an operator lacks.",
}
"""A type → how it comes that it is called."""


@FORMS.read_by(
    "python_kind",
    r"(?P<holder>list|tuple|string|str|byte) ind(?:ices|exes) must be integers(?: or slices)?, not "
    r"'?(?P<kind>[\w.]{1,60})'?",
)
def _subscript(found: re.Match[str], _: Failure) -> tuple[str, str]:
    holder, kind = found["holder"], found["kind"]
    reasons = {
        "str": f"A name stands where a number is meant: it is a {holder}, not a dictionary. Take an element first, "
        "x[0]['name'], or look which function returned it: text of JSON may lack json.loads.",
        "float": "The number comes from / : divide whole numbers with //, or take int(x).",
        "Tensor": "Take the number out of the tensor, int(i), or index a tensor or array instead.",
        "tuple": f"Several indices are given: a {holder} takes one at a time, x[i][j]; an array takes x[i, j].",
    }
    return f"A {holder} is indexed with {with_article(kind)}.", reasons.get(kind, f"{origin_of(kind)}.")


@FORMS.read_by(
    "python_kind",
    r"'(?P<kind>[\w.]{1,60})' object cannot be interpreted as an? (?P<wanted>integer)",
)
@FORMS.read_by(
    "argument_kind",
    r"argument '(?P<name>\w{1,60})' (?:\(position \d{1,3}\) )?must be (?P<wanted>[\w. ]{1,60}), "
    r"not (?P<kind>[\w.]{1,60})",
    r"Error: (?:\w{1,60}\(\):? )?(?:argument )?(?P<name>)(?:[Ee]xpected |must be )(?P<wanted>(?:an? )?[\w.]{1,60}"
    r"(?:, [\w.]{1,60}){0,3}(?: or [\w.]{1,60})?(?: object| instance)?),? (?:but got|got|not) (?:an? )?"
    r"['\"]?(?:<class ')?(?P<kind>[A-Za-z][\w.]{1,60})",
)
@FORMS.read_by(
    "python_kind",
    r"(?:sequence item \d{1,9}: )expected (?P<wanted>\w{1,20}) instance, (?P<kind>\w{1,40}) found",
)
def _wanted_kind(found: re.Match[str], failure: Failure) -> tuple[str, str] | None:
    names = found.groupdict()
    wanted, kind, name = names["wanted"].strip(), names["kind"], names.get("name") or ""
    if kind == "NoneType":
        return f"{f'`{name}`' if name else 'The call'} takes {wanted}, and gets None.", _none(found, failure)[1]
    subject = f"`{name}`" if name else "The call"
    return f"{subject} takes {wanted}, and gets {with_article(kind)}.", (
        f"{origin_of(kind)}. Convert it where it is made, or pass the object that is meant."
    )


@FORMS.read_by(
    "python_kind", r"unsupported format string passed to (?:[\w]{1,40}\.){0,4}(?P<kind>\w{1,60})\.__format__"
)
def _formatted(found: re.Match[str], failure: Failure) -> tuple[str, str]:
    kind = "None" if found["kind"] == "NoneType" else found["kind"]
    says = f"A number is to be formatted, and {'None' if kind == 'None' else with_article(kind)} comes."
    if kind in ("Tensor", "ndarray", "Array", "Series"):
        return says, (
            "It holds several values or keeps a dimension: a loss of each sample (reduction='none'), of each class or "
            "device. Reduce it first: x.mean().item(), or name the one that is meant."
        )
    if kind == "None":
        return says, _none(found, failure)[1]
    return says, f"{origin_of(kind)}. Format the number in it, or leave out the format."


@FORMS.read_by("python_kind", r"unhashable type: '(?P<kind>[\w.]{1,60})'")
def _unhashable(found: re.Match[str], _: Failure) -> tuple[str, str]:
    kind = found["kind"]
    return f"{capitalised(with_article(kind))} is used as a key, in a set or in a group.", (
        "Turn it into what can be a key: tuple(x) of a list, x.item() of a tensor, str(x) of a dictionary. A column of "
        "lists cannot be grouped or counted; a dictionary for a dataclass field needs default_factory."
    )


@FORMS.read_by(
    "python_kind",
    r"can only concatenate (?P<left>\w{1,20}) \(not \"(?P<kind>[\w.]{1,60})\"\)",
)
def _concatenated(found: re.Match[str], _: Failure) -> tuple[str, str]:
    left, right = found["left"], found["kind"]
    return f"`+` joins {with_article(left)} and {with_article(right)}.", (
        "To join text write f'{x}' or str(x); to add numbers convert the text, float(x). "
        "Lists take lists: x + [y]; to add element by element turn both into arrays."
    )


@FORMS.read_by(
    "python_unpack",
    r"(?:too many|not enough) values to unpack \(expected (?:at least )?(?P<expected>\d{1,9})"
    r"(?:, got (?P<got>\d{1,9}))?\)",
)
def _unpacking(found: re.Match[str], _: Failure) -> tuple[str, str]:
    expected, got = found["expected"], found["got"]
    says = f"The line takes {expected} values, and {'there are ' + got if got else 'there are more'}."
    return says, (
        "Print what is unpacked and its len(): a data set, function or environment returns another number of parts "
        "than the names on the left. A dictionary unpacks into its keys, a tensor into its rows."
    )


# Names that are not there.


@FORMS.read_by(
    "import_name",
    r"cannot import name '(?P<name>\w{1,80})' from (?:partially initialized module )?'(?P<module>[\w.]{1,120})'"
    r"(?: \((?:most likely due to a circular import\) \()?(?P<path>[^()]{1,300})\))?",
)
def _import(found: re.Match[str], failure: Failure) -> tuple[str, str]:
    name, module, path = found["name"], found["module"], found["path"] or ""
    says = f"{module} has no `{name}`."
    if "partially initialized" in found[0] or "circular import" in found[0]:
        return says, (
            f"{module} is not loaded to its end when `{name}` is asked for: two files import each other, or a file of "
            "yours has the name of the package. Move one import into the function that needs it, or rename the file."
        )
    if path and "-packages" not in path:
        return says, f"The path in brackets is a file of your own: define `{name}` there, or correct its spelling."
    package = module.partition(".")[0]
    asks = library_of(failure) if not is_users(failure) else ""
    if asks and asks.partition(" ")[0] != package:
        return says, (
            f"{asks} asks {package} for it: the two versions do not fit. Upgrade the older of the two, or pin the "
            "newer to what its release notes ask for."
        )
    return says, (
        f"The installed {package} has moved, renamed or removed `{name}`, or does not have it yet. Look in its release "
        f"notes for what took its place, and change the import; or install the version that the code was written for."
    )


@FORMS.read_by("python_key", rf"^[\w.]{{0,200}}KeyError: {QUOTED_NAME}$")
def _key(found: re.Match[str], failure: Failure) -> tuple[str, str] | None:
    name, code = found["name"], users_line(failure)
    subject = _expression_before(code, rf"(?:\[|\.pop\()\s?f?['\"]?{re.escape(name)}\b")
    columns = f"list({subject}.columns)" if subject else "its columns"
    keys = f"list({subject}.keys())" if subject else "the keys of what your line indexes"
    says = f"There is no key `{name}`" + (f" in `{subject}`." if subject else ".")
    if subject.endswith("environ"):
        return f"The environment variable `{name}` is not set.", (
            "Set it where the program is started, or use a launcher that sets it (torchrun, accelerate, a scheduler). "
            f"Where it may be missing, use os.environ.get('{name}', default)."
        )
    if failure.frames and re.search(r"[/\\](?:pandas|polars|datasets)[/\\]", failure.frames[-1].file):
        return says, (
            f"Print {columns}, or column_names of a data set: the column has another spelling, case or "
            f"space, was dropped or renamed, or the header was not read."
        )
    return says, (
        f"Print {keys} one line above, and take the key that is there: it has another name or case, was "
        f"dropped or renamed on the way, or belongs to another kind of file. Where it may be missing, use .get."
    )


@FORMS.read_by(
    "python_index",
    r"[Ii]ndex (?P<index>-?\d{1,15}) is out of (?:bounds|range) for (?:dimension|axis) \d{1,3} with size "
    r"(?P<size>\d{1,15})",
)
def _index(found: re.Match[str], _: Failure) -> tuple[str, str]:
    index, size = found["index"], int(found["size"])
    return f"Index {index} is asked for, and the dimension has {size:,}: 0 to {size - 1:,}.", (
        "Print what gives the index: labels or ids that start at 1, or a class more than the model has. Or an index of "
        "the whole data is used on a part of it, or the size was set too small."
    )


# What messages say of values and arrays: text that is read, options, allowed values, shapes.


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
