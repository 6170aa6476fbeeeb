#!/bin/sh
# When a session begins: builds the server in the background where only uvx can start it, so that the next start is fast;
# says what is missing where nothing can.
here=$(CDPATH= cd -- "$(dirname -- "$0")/../.." && pwd)
if command -v mldebug-mcp >/dev/null 2>&1; then
  exit 0
elif command -v uvx >/dev/null 2>&1; then
  uvx --from "$here" mldebug-mcp --version >/dev/null 2>&1 &
else
  echo '{"systemMessage": "mldebug: its server needs mldebug-mcp or uv on PATH; run pip install uv and restart, or use mldebug-mcp install claude-code"}'
fi
