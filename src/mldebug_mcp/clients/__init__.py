"""The MCP clients that `mldebug-mcp install` knows, and how to put the server into their configuration.

entries.py says which file each client reads. It makes the server's entry and puts it into the file's text, of JSON by
jsonc.py, and leaves all else as it is. launch.py says which command starts this server. It writes files, with a backup.
"""
