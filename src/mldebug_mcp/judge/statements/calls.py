"""What messages of Python say: calls that a signature does not take, kinds of objects, names that are not there."""

from __future__ import annotations

import re
from keyword import iskeyword

from mldebug_mcp.core.text import capitalised
from mldebug_mcp.judge.statements import (
    KINDS,
    QUOTED_NAME,
    Forms,
    is_users,
    library_of,
    listing,
    origin_of,
    users_line,
    with_article,
)
from mldebug_mcp.logs.failures import Failure

FORMS = Forms()

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
