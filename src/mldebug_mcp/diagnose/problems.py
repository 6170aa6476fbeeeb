"""The kind of problem behind an exception whose message is not known, and what to try: by type, then by words."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """A class of problems."""

    name: str
    advice: str


_UNKNOWN = Problem(
    "unknown",
    "Read the innermost frame of your own code and print what goes into it; reproduce with one process, one batch and "
    "num_workers=0; search the exact message in the issues of the library that raised it.",
)
_SHAPES = (
    r"shapes? mismatch|mismatch(?:ed)? (?:in )?(?:shape|size|dimension)|broadcast|must match|not aligned|"
    r"\b(?:[Ss]hapes?|[Ss]izes?|[Dd]imensions?|dims?|ranks?|channels)\b.{0,80}(?:expected|but got|incompatible|"
    r"inhomogeneous|inconsistent|invalid|do(?:es)? not|cannot be)|"
    r"(?:[Ee]xpected|inconsistent|incompatible|invalid|wrong).{0,60}\b(?:shapes?|sizes?|dimensions?|channels)\b"
)
_TYPES = (
    r"dtypes?\b|scalar ?type|float(?:16|32|64)|\b(?:c10::)?(?:Half|BFloat16|Float|Double|Long|Byte|Bool)(?:Tensor)?\b|"
    r"(?:same|different|wrong|mismatched|unexpected) devices?\b|on (?:the )?(?:cpu|cuda\S*) but|device type"
)
# Each line: exception types, words of the message (empty: any), class, advice. The first that fits counts.
_TABLE: tuple[tuple[str, str, Problem], ...] = (
    (
        r"ModuleNotFoundError|ImportError|PackageNotFoundError",
        "",
        Problem(
            "environment: a package is missing or does not fit",
            "Check with pip that the package is installed in the interpreter that runs (python -m pip list), and "
            "that its version fits the code; look for a file of yours with the package's name.",
        ),
    ),
    (
        r"TypeError",
        r"unexpected keyword argument|missing \d+ required|takes (?:from |at most |exactly |no )?\w+ |"
        r"got multiple values",
        Problem(
            "interface: a function is called with arguments that it does not take",
            "Two versions do not fit: compare the call with the signature in the installed version, then pin or "
            "upgrade. In an overridden method, take over the new signature.",
        ),
    ),
    (
        r"TypeError|AttributeError",
        r"NoneType|\bgot None\b",
        Problem(
            "interface: None where an object was expected",
            "Print what the line takes: a function that returned nothing, a setting that was not given, or a column or "
            "file that was not found upstream.",
        ),
    ),
    (
        r"AttributeError",
        r"has no attribute|object has no setter|can't set attribute",
        Problem(
            "interface: an object lacks what is asked of it",
            "Print type() of it one line above: a tuple, list, string or array where an object was expected, a name "
            "that is misspelt or set in another place, or one that another version of the library has.",
        ),
    ),
    (
        r"TypeError",
        r"not (?:subscriptable|callable|iterable|reversible)|indices must be|unsupported operand|unhashable|has no len"
        r"|not supported between instances|must be (?:str|real number|an integer)|not '?\w{1,30}'?$",
        Problem(
            "interface: an object is of another kind than the code expects",
            "Print type() of it one line above: a string or dictionary for an object, a class for its instance "
            "(missing brackets), a property called like a method, text from a configuration for a number.",
        ),
    ),
    (
        r"ValueError|TypeError",
        r"values to unpack|cannot unpack",
        Problem(
            "interface: a result has another number of parts than the code takes",
            "Print the value and its length there: a function, data set or environment that returns more or fewer "
            "parts (another version, another mode), or a row that is malformed.",
        ),
    ),
    (
        r"UnboundLocalError",
        "",
        Problem(
            "code: a name is used before it got a value",
            "The branch or loop that sets it did not run: as a rule a data loader or list without a single element, or "
            "a condition that no case fits. Print how often the loop ran.",
        ),
    ),
    (
        r"AssertionError|ValueError|RuntimeError|Exception",
        r"divisible|divide evenly|multiple of",
        Problem(
            "configuration: a number does not divide another",
            "The message names both: sizes of batches, heads, layers or groups of ranks have to split evenly. Change "
            "the one that is free; where none is, the number of processes.",
        ),
    ),
    (
        r"RuntimeError|ValueError|IndexError|InvalidArgumentError",
        _SHAPES,
        Problem(
            "shapes: two tensors do not fit",
            "Print the shapes at the frame of your own code, with the batch size set to an unusual number, so "
            "that it can be told apart from other dimensions.",
        ),
    ),
    (
        r"RuntimeError|TypeError|ValueError",
        _TYPES,
        Problem(
            "types or devices: tensors of different dtype or device meet",
            "Print dtype and device of what enters the frame of your own code; cast or move on purpose at one place.",
        ),
    ),
    (
        r"KeyError",
        "",
        Problem(
            "data: a key or column is missing",
            "Print the keys of one example and of one batch just before that line; compare with the columns that the "
            "trainer expects; the name may have been dropped or renamed on the way.",
        ),
    ),
    (
        r"IndexError|StopIteration",
        "",
        Problem(
            "data: an index is out of range, or the data ended",
            "Print the length and the index at that line; look for an empty row, an empty split or a wrong label.",
        ),
    ),
    (
        r"FileNotFoundError|NotADirectoryError|IsADirectoryError|PermissionError|FileExistsError|OSError|IOError",
        "",
        Problem(
            "files: a path is missing, wrong or not allowed",
            "Print the absolute path and the working directory; check that the path exists on every node and in the "
            "container, that it is writable, and that the disk is not full.",
        ),
    ),
    (
        r"\w*HTTPError|HfHub\w*Error|Connection\w*Error|\w*Timeout\w*|SSLError|ProxyError|URLError|RemoteDisconnected|"
        r"ProtocolError|gaierror",
        "",
        Problem(
            "network: a server was not reached or refused",
            "Check that the node has network, the address, and the token; download beforehand and run offline.",
        ),
    ),
    (
        r"MemoryError",
        "",
        Problem(
            "memory of the host: an allocation failed",
            "Stream or memory-map the data, fewer workers; look for a list that grows over the run.",
        ),
    ),
    (
        r"ZeroDivisionError|FloatingPointError|OverflowError",
        "",
        Problem(
            "numbers: a division by zero or an overflow in Python",
            "Look for an empty batch, an empty split or a count of zero that is divided by; guard it where it arises.",
        ),
    ),
    (
        r"JSONDecodeError|Unicode\w*Error|\w*ParserError|YAMLError|ScannerError|ConstructorError|UnpicklingError|EOFError|"
        r"BadZipFile|DataLossError",
        "",
        Problem(
            "files: the content cannot be read",
            "Look at the first and last lines of the file; it may be cut off, empty, or of another format or encoding.",
        ),
    ),
    (
        r"AssertionError",
        "",
        Problem(
            "an assumption of the code does not hold",
            "Read the assertion at the innermost frame: it names what was expected; print both sides of it.",
        ),
    ),
    (
        r"KeyboardInterrupt",
        "",
        Problem(
            "stopped by hand",
            "Nothing failed: somebody pressed Ctrl-C or sent SIGINT. Where nobody did, look at the scheduler.",
        ),
    ),
    (
        r"RecursionError",
        "",
        Problem("code: a function calls itself without end", "Look at the pair of frames that repeats."),
    ),
    (
        r"NotImplementedError",
        "",
        Problem(
            "a combination that the library does not offer",
            "Look in its documentation for what the device, dtype or option needs, or use another one.",
        ),
    ),
    (
        r"UserWarning|\w*Warning",
        "",
        Problem("a warning", "It stopped nothing by itself; look for an exception after it."),
    ),
    (
        r"NameError|SyntaxError|IndentationError|TabError",
        "",
        Problem(
            "code: a name or a line of the script is wrong",
            "Fix the line of the innermost frame of your own code; where the name belongs to a package, its import is "
            "missing, or failed above (an optional package, an extension that was not built).",
        ),
    ),
    (
        r"ValueError|TypeError",
        "",
        Problem(
            "a value or type that is not allowed, in the configuration or in the data",
            "The message says which; follow it from the frame of your own code back to the configuration or to the row "
            "of data that it comes from.",
        ),
    ),
)


def classify(exception: str, message: str) -> Problem:
    """Return the kind of problem that an exception is.

    Args:
        exception: Its type, without modules; may be empty.
        message: Its message.
    """
    for types, words, problem in _TABLE:
        if re.fullmatch(types, exception) and (not words or re.search(words, message[:2_000])):
            return problem
    return _UNKNOWN
