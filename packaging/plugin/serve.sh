#!/bin/sh
# Starts the server of the plugin: the command that is installed, else what uvx builds from this folder.
# The first start by uvx downloads what the package needs; `sh serve.sh --version` does so before.
here=$(CDPATH= cd -- "$(dirname -- "$0")/../.." && pwd)
if command -v mldebug-mcp >/dev/null 2>&1; then
  exec mldebug-mcp "$@"
elif command -v uvx >/dev/null 2>&1; then
  exec uvx --from "$here" mldebug-mcp "$@"
fi
echo "mldebug: neither mldebug-mcp nor uvx is on PATH; run 'pip install mldebug-mcp' or 'pip install uv', then restart" >&2
exit 127
