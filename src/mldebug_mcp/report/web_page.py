"""The frame of every page, and writing pages and pictures that the user asked for by name."""

from __future__ import annotations

import re
import secrets
from base64 import b64encode
from collections.abc import Callable
from hashlib import sha256
from html import escape
from pathlib import Path

from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.text import clean, shorten
from mldebug_mcp.report.sections import Block

# The frame of every page we write: one file, nothing loaded, light or dark as the reader has it.
#
# A page may bring one script of ours, which its policy names by hash: whatever else got into it would not run.


_CODE = re.compile(r"`([^`]+)`")
_STYLE = """
:root { color-scheme: light dark; --text: #1b1b1b; --dim: #666; --back: #fff; --line: #ddd; --bad: #b00020;
  --warn: #9a6700; --info: #2f6fab; --good: #2e7d32; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e6e6e6; --dim: #9a9a9a; --back: #16181c; --line: #3a3d42; --bad: #ff7b86; --warn: #e3b341;
    --info: #7fb2e5; --good: #81c784; }
}
body { font: 15px/1.45 system-ui, sans-serif; color: var(--text); background: var(--back); max-width: 62rem;
  margin: 2rem auto; padding: 0 1rem; overflow-wrap: break-word; }
h1 { font-size: 1.3rem; } h2 { font-size: 1.1rem; margin-top: 1.8rem; } p { margin: .4rem 0; }
table { border-collapse: collapse; } td { padding: .15rem 1rem .15rem 0; text-align: left; vertical-align: top; }
td:last-child { overflow-wrap: anywhere; } td.number { text-align: right; white-space: nowrap; }
.dim, cite { color: var(--dim); } .error b { color: var(--bad); } .warning b { color: var(--warn); }
blockquote { margin: .6rem 0; padding-left: 1rem; border-left: .2rem solid var(--line); }
cite { display: block; font-style: normal; } a { color: inherit; }
svg { width: 100%; height: auto; }
code { font: .9em/1.5 ui-monospace, monospace; }
.verdict { border-left: .35rem solid var(--line); padding: .5rem 1rem; margin: 1rem 0; }
.verdict > p { font-size: 1.15rem; } .verdict.fault { border-color: var(--warn); }
.verdict.healthy { border-color: var(--good); }
.verdict dl { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: .2rem .8rem; margin: .6rem 0 0; }
.verdict dt { font-weight: bold; } .verdict dd { margin: 0; } .verdict dd p { margin: 0 0 .2rem; }
.verdict code { overflow-wrap: anywhere; }
.on-narrow { display: none; } .on-narrow svg { max-width: 36rem; }
@media (max-width: 60rem) { .on-wide { display: none; } .on-narrow { display: block; } }
svg .over { paint-order: stroke; stroke: var(--back); stroke-width: 4px; stroke-linejoin: round; }
.key { margin: 0; } .key bdi { display: inline-block; }
.key span { display: inline-block; width: 11px; height: 11px; margin: 0 4px 0 12px; }
:focus-visible { outline: 2px solid var(--info); outline-offset: 2px; }
""".strip()


def web_page(title: str, parts: list[str], style: str = "", script: str = "", *, calls_home: bool = False) -> str:
    """Return a page of parts in HTML: text from outside is escaped already, and it is cleaned here.

    The script is plain ASCII; it may ask the server that the page came from only where the page `calls_home`.
    """
    script = script.strip()
    policy = policy_of(script, calls_home=calls_home)
    runs = f"<script>{script}</script>" if script else ""
    return clean(
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        f"<title>{escape(title)}</title><style>{_STYLE}\n{style.strip()}</style></head>\n"
        f"<body><main>{''.join(parts)}</main>{runs}</body></html>\n"
    )


WIDE_PICTURE_WIDTH = 960
"""Width that a picture is drawn in for a wide page."""
NARROW_PICTURE_WIDTH = 360
"""Width that a picture is drawn in for a phone, which would shrink the letters of the wide one."""


def for_both_widths(draw: Callable[[int], str]) -> str:
    """Return a picture drawn for a wide and for a narrow page; the page shows the one that fits."""
    wide, narrow = draw(WIDE_PICTURE_WIDTH), draw(NARROW_PICTURE_WIDTH)
    return f'<div class="on-wide">{wide}</div><div class="on-narrow">{narrow}</div>'


def policy_of(script: str, *, calls_home: bool = False) -> str:
    """Return the Content-Security-Policy of a page with a script."""
    allowed = ["default-src 'none'", "style-src 'unsafe-inline'", "base-uri 'none'", "form-action 'none'"]
    if script:
        digest = b64encode(sha256(script.encode()).digest()).decode()
        allowed.append(f"script-src 'sha256-{digest}'")
    if calls_home:
        allowed.append("connect-src 'self'")
    return "; ".join(allowed)


def prose(text: str) -> str:
    """Return text of ours as HTML, what stands between backticks as code."""
    return _CODE.sub(r"<code>\1</code>", escape(text))


def block_html(block: Block) -> str:
    """Return the verdict block: what leads, why, the next check with its command, the fix."""
    rows = [(block.why, "".join(f"<p>{prose(fact)}</p>" for fact in block.facts))]
    rows += [("Next", _next_html(block))] if block.next or block.command else []
    rows += [("Fix", f"<p>{prose(block.fix)}</p>")] if block.fix else []
    lines = "".join(f"<dt>{name}</dt><dd>{body}</dd>" for name, body in rows if body)
    kind = block.kind.replace(" ", "-")
    more = f"<dl>{lines}</dl>" if lines else ""
    return f'<div class="verdict {kind}"><p><b>{prose(block.headline)}</b></p>{more}</div>'


def _next_html(block: Block) -> str:
    """Return what to do next; what a check shows stands folded below it."""
    needs = f" ({block.needs})" if block.needs else ""
    command = f"<p><code class=call>{escape(block.command)}</code></p>" if block.command else ""
    return f"<p>{prose(block.next + needs)}</p>{command}"


def write_file(path: str | Path, content: str | bytes) -> None:
    """Write a file, text as UTF-8. One that is there stays as it was until the new one is whole.

    Raises:
        InputError: the file cannot be written.
    """
    try:
        _replace(Path(path).resolve(), content.encode() if isinstance(content, str) else content)
    except OSError as error:
        why = error.strerror or error
        raise InputError(f"{shorten(str(path), 200)}: cannot be written ({why}); name another file") from None


def _replace(path: Path, content: bytes) -> None:
    """Write a file next to the one to be replaced, then put it in its place."""
    if path.exists() and not path.is_file():  # a terminal, a pipe or a folder: there is nothing to keep
        path.write_bytes(content)
        return
    temporary_file = path.with_name(f".{path.name[:80]}.{secrets.token_hex(4)}")
    try:
        with temporary_file.open("xb") as file:
            file.write(content)
        if path.exists():
            temporary_file.chmod(path.stat().st_mode)
        temporary_file.replace(path)
    except BaseException:
        temporary_file.unlink(missing_ok=True)
        raise
