"""What an error message says itself: which argument, attribute, value, shape or type is wrong, and what to change.

An entry of `errors.jsonl` holds one text for all messages that it fits. Here the values of a message are put into the
explanation: names, allowed values, both shapes. Only names without spaces, numbers and shapes are taken over. So what
a log says reaches the explanation as data, never as a sentence. This is a form of messages, and what readers of several
forms share.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from mldebug_mcp.logs.failures import Failure

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
