"""What a probe has to do, checked before a process is started."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from mldebug_mcp.access import OutsideError, current, is_folder, require
from mldebug_mcp.config_json import read_config_json
from mldebug_mcp.errors import InputError
from mldebug_mcp.offline import OFFLINE
from mldebug_mcp.paths import expanded
from mldebug_mcp.text import shorten

GIB = 1024**3
PASS_VARIABLE = "MLDEBUG_MCP_PASS_ENV"  # noqa: S105 - the name of a variable
"""Names of variables that user code gets beside those of `_PASSED`, separated by commas: "MY_DATA,MY_CONFIG"."""
_PASSED = re.compile(
    r"PATH|HOME|USER|LOGNAME|SHELL|LANG|LANGUAGE|TZ|TMPDIR|TEMP|TMP|VIRTUAL_ENV|PYTHON\w*|LD_LIBRARY_PATH|DYLD_\w*|DISPLAY"
    r"|SYSTEMROOT|SYSTEMDRIVE|WINDIR|COMSPEC|PATHEXT|APPDATA|LOCALAPPDATA|PROGRAMDATA|USERPROFILE|NUMBER_OF_PROCESSORS"
    r"|HF_(?:HOME|HUB_CACHE|DATASETS_CACHE|MODULES_CACHE|ASSETS_CACHE)|XDG_CACHE_HOME|TRITON_CACHE_DIR"
    r"|(?:LC|CONDA|CUDA|NVIDIA|HIP|ROCR|ROCM|HSA|XPU|OMP|MKL|KMP|OPENBLAS|NUMEXPR|NCCL|CUBLAS|CUDNN|TORCH|TORCHINDUCTOR"
    r"|PYTORCH|XLA|SLURM)_\w+"
)
"""What a training program needs of the environment, by the documentation of Python, conda, CUDA, ROCm, OpenMP, PyTorch
and the Hub's client. A list of what is secret is never complete, so whatever is not listed stays here."""
_SECRET = re.compile(r"TOKEN|SECRET|PASS|PWD|CREDENTIAL|KEY|AUTH|JWT|COOKIE|_PAT\b", re.IGNORECASE)
"""What even a name on the list must not hold: CONDA_TOKEN, SLURM_JWT."""
_PYTHON = re.compile(r"(?:python|pypy)[\d.]*(?:\.exe)?", re.IGNORECASE)
_QUIET = OFFLINE | {
    "TRANSFORMERS_VERBOSITY": "error",
    "PYTHONUNBUFFERED": "1",
    "TOKENIZERS_PARALLELISM": "false",
    # Threads that spin while they wait make tiny models ten times slower on a shared machine.
    "OMP_WAIT_POLICY": "PASSIVE",
    "KMP_BLOCKTIME": "0",
}


class Job(BaseModel):
    """A probe's settings; the worker reads them as JSON."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")

    batch: dict[str, Any] | None = None
    config: dict[str, Any] | None = None
    entry: str | None = None
    device: Annotated[str, Field(max_length=40)] = "auto"
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    steps: Annotated[int, Field(ge=1, le=100_000)] = 300
    learning_rate: Annotated[float, Field(gt=0)] | None = None
    optimizer: Literal["adamw", "adam", "sgd"] = "adamw"
    clip: Annotated[float, Field(gt=0)] | None = 1.0
    time_limit: Annotated[float, Field(ge=1, le=86_400)] = 60.0
    memory_bytes: int | None = None
    seed: int = 0
    threads: Annotated[int, Field(ge=1)] | None = None


def clean_environment() -> dict[str, str]:
    """Return what user code gets of this process's environment, with downloads and trackers switched off."""
    named = {name.strip() for name in os.environ.get(PASS_VARIABLE, "").split(",")}
    passed = {name: value for name, value in os.environ.items() if name in named or _may_pass(name)}
    return passed | _QUIET


def _may_pass(name: str) -> bool:
    return _PASSED.fullmatch(name.upper()) is not None and not _SECRET.search(name)


def find_python(python: str | Path | None) -> str:
    """Return the interpreter to use, a program or the folder of an environment.

    It is the one named, else the first that the server was started with, else this one.

    Raises:
        InputError: there is no interpreter there, or it may not be run.
    """
    chosen = python or next(iter(current().pythons), None)
    if chosen is None:
        return sys.executable
    path = expanded(chosen)
    check_interpreter(path)
    if path.is_dir():
        inside = next((path / one for one in ("bin/python", "Scripts/python.exe") if (path / one).is_file()), None)
        if inside is None:
            raise InputError(f"{shorten(str(path), 200)}: a folder without bin/python; name the interpreter itself")
        return str(inside)
    found = shutil.which(str(path))
    if found is None:
        raise InputError(f"{shorten(str(path), 200)}: not a program that can be run; name a Python interpreter")
    return found


def check_interpreter(path: Path) -> None:
    """Raise InputError unless an interpreter may be run: where roots are set, one named at the start or inside them.

    An environment's interpreter is a link to the one it was made with, outside. So it is its folder that has to lie
    inside the roots, and both ends of the link have to be called Python: any program can be the target of a link.
    """
    access = current()
    if access.roots is None or str(path) in access.pythons or str(path.parent.parent) in access.pythons:
        return
    program = path / "bin" / "python" if is_folder(path) else path
    inside = access.allows(str(program.parent.resolve()))
    if inside and all(_PYTHON.fullmatch(one.name) for one in (program, program.resolve())):
        return
    raise OutsideError(
        f"{shorten(str(path), 200)}: not an interpreter that this server may run: name an environment inside the "
        f"allowed roots ({', '.join(access.roots) or 'none'}), or start the server with --python PATH"
    )


def check_entry(entry: str) -> None:
    """Raise InputError unless an entry may be run: where roots are set, a file inside them."""
    if current().roots is None:
        return
    file, _, _ = entry.rpartition(":")
    if not file.endswith(".py"):
        raise InputError(
            f"{shorten(entry, 120)!r}: over MCP an entry is FILE.py:function, in a file inside the allowed roots"
        )
    require(Path(file))


def read_config(path: str | Path) -> dict[str, Any]:
    """Return a model's `config.json`, from its path or the folder that holds it.

    Raises:
        InputError: it cannot be read, or needs code that is not part of transformers.
    """
    config, name = read_config_json(path)
    if "model_type" not in config:
        raise InputError(f"{name}: it has no model_type, as a model's config.json has; name that file or its folder")
    if "auto_map" in config:
        raise InputError(
            f"{name}: this model comes with code of its own (auto_map), which the probe does not run; use an entry, a "
            "function of yours that builds it"
        )
    return config


def memory_limit(gigabytes: float | None) -> int | None:
    """Return the limit in bytes: the one given, else four fifths of the machine's memory; None if that is unknown."""
    if gigabytes is not None:
        return int(gigabytes * GIB)
    try:
        return int(0.8 * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return None
