"""The MCP clients that `mldebug-mcp install` knows, and how to put the server into their configuration.

table.py says which file each client reads and what stands in it; launch.py which command starts this server; entries.py
makes an entry and puts it into a file's text, of JSON by jsonc.py, and leaves all else as it is. launch.py also writes
files, with a backup.
"""
