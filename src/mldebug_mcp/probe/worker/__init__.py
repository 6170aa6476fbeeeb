"""The probe's worker: standalone scripts that a user's own interpreter runs, with the standard library and torch alone.

`__main__.py JOB.json RESULT.json` is the entry. This folder imports nothing of the package around it, because the
interpreter that runs it need not have that installed.
"""
