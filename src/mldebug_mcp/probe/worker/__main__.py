"""Run a probe: `python WORKER/__main__.py JOB.json RESULT.json`, with progress as JSON lines on standard output.

This file stays readable for any Python 3, so that an interpreter that is too old gets a clear answer.
"""

import importlib.util
import json
import os
import sys
import types

NAME = "mldebug_probe_worker"
OLDEST = (3, 10)


def _load() -> types.ModuleType:
    """Import the worker under a name of its own, so that no file of it can hide a module of the user's."""
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if os.path.abspath(path or ".") != here]
    spec = importlib.util.spec_from_file_location(
        NAME, os.path.join(here, "__init__.py"), submodule_search_locations=[here]
    )
    assert spec is not None
    assert spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules[NAME] = package
    spec.loader.exec_module(package)
    return importlib.import_module(NAME + ".job")


if __name__ == "__main__":
    if sys.version_info < OLDEST:
        message = "Python %d.%d is too old for the probe; name one of 3.10 or later" % sys.version_info[:2]
        with open(sys.argv[2], "w") as file:
            json.dump({"failure": {"kind": "old_python", "message": message}, "measured": {}}, file)
        sys.exit(0)
    _load().main(sys.argv[1], sys.argv[2])
