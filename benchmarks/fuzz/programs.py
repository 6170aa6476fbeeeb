"""Chat templates made by a grammar: programs in Jinja that are valid more often than not, and mad."""

from __future__ import annotations

from random import Random

NAMES = (
    "messages", "message", "m", "loop", "bos_token", "eos_token", "add_generation_prompt", "tools", "ns", "x", "None",
)  # fmt: skip
ATTRIBUTES = (
    "role", "content", "index", "index0", "first", "last", "previtem", "items()", "split('a')", "strip()", "x",
    "__class__", "__init__.__globals__", "format('%s')", "join(messages)", "upper()", "replace('', 'aa')",
)  # fmt: skip
FILTERS = (
    "trim", "length", "upper", "list", "tojson", "join(',')", "first", "last", "default('')", "string", "int", "sort",
    "unique|list", "reverse|list", "batch(2)|list", "map(attribute='role')|list", "sum", "safe", "e",
    "replace('a','bb')", "indent(4)", "wordwrap(3)", "center(99)", "pprint", "xmlattr", "urlize", "dictsort",
)  # fmt: skip
TESTS = ("defined", "none", "string", "mapping", "iterable", "odd", "sameas none", "in messages", "divisibleby(0)")
LITERALS = (
    "0", "1", "-1", "1e308", "'assistant'", "'user'", "''", "'\\n'", "[]", "{}", "[1, 'a']", "{'a': [1]}", "true",
    "range(9)|list", "'<|im_start|>'", "'\u202e\\x1b[31m'", "'a'*99", "namespace(a=1)",
)  # fmt: skip
OPERATORS = ("+", "-", "*", "/", "//", "%", "~", "==", "<", "and", "or", "in")
CALLS = (
    "raise_exception('no')", "strftime_now('%Y')", "range(0, 9, 2)", "dict(a=1)", "cycler('a','b').next()", "f(x)",
    "joiner()()", "lipsum(1)", "messages[0]['role']", "messages[::-1]", "messages[99].content",
)  # fmt: skip


def template(random: Random) -> bytes:
    """Write a chat template that no loop but those over what there is makes long."""
    return _block(random, 0).encode()


def _block(random: Random, depth: int) -> str:
    return "".join(_statement(random, depth) for _ in range(random.randrange(1, 4)))


def _statement(random: Random, depth: int) -> str:  # noqa: PLR0911 - one for each kind
    def inner() -> str:
        return _block(random, depth + 1) if depth < 4 else "a"

    value = _expression(random, depth)
    kind = random.randrange(12)
    if kind < 4:
        return f"{{{{ {value} }}}}"
    if kind < 6:
        over = random.choice(("messages", "messages[1:]", value))
        return f"{{%- for {random.choice(('m', 'message', 'x'))} in {over} %}}{inner()}{{% endfor %}}"
    if kind == 6:
        return f"{{% if {value} %}}{inner()}{{% else %}}{inner()}{{% endif %}}"
    if kind == 7:
        return f"{{% set {random.choice(('x', 'ns.a', 'messages'))} = {value} %}}"
    if kind == 8:
        return f"{{% macro f(a, b=1) %}}{inner()}{{% endmacro %}}{{{{ f({value}) }}}}"
    if kind == 9:
        return f"{{% generation %}}{inner()}{{% endgeneration %}}"
    return random.choice(
        (
            "<|im_start|>",
            "<|im_end|>\n",
            "{{ m.role }}\n{{ m.content }}",
            "{% break %}",
            "{#",
            "{{",
            "%}",
            "{% include 'x' %}",
            "{% filter upper %}a{% endfilter %}",
            "\0",
            "\u202e",
            "{% raw %}",
        )
    )


def _expression(random: Random, depth: int) -> str:
    one = random.choice(random.choice((NAMES, LITERALS, CALLS)))
    for _ in range(random.randrange(3)):
        kind = random.randrange(5)
        if kind == 0:
            one = f"{one}.{random.choice(ATTRIBUTES)}"
        elif kind == 1:
            one = f"{one}|{random.choice(FILTERS)}"
        elif kind == 2:
            one = f"({one} is {random.choice(('', 'not '))}{random.choice(TESTS)})"
        elif depth < 6:
            one = f"({one} {random.choice(OPERATORS)} {_expression(random, depth + 3)})"
    return one


SEEDS = (
    b"{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}",
    b"{{ bos_token }}{% for m in messages %}{% if m.role == 'user' %}[INST] {{ m.content|trim }} [/INST]{% else %}"
    b"{% generation %}{{ m.content }}{% endgeneration %}{{ eos_token }}{% endif %}{% endfor %}",
)
