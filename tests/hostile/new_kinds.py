"""Hostile logs, settings, folders and containers, made below a folder, each with the call that reads it."""

# ruff: noqa: PLW0108 - what takes megabytes is made only when it is asked for

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import pickle
import struct
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

Call = tuple[str, dict[str, Any]]
Make = Callable[[Path], Call]
RECORD = '{"step": %d, "loss": 2.5}\n'
KNOWN = "learning_rate=0.1, batch_size=8, max_steps=9, weight_decay=0.1, seed=1"


def log(text: str | bytes, name: str = "train.log") -> Make:
    """A log of that text."""

    def make(folder: Path) -> Call:
        (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode(errors="surrogatepass"))
        return "diagnose_run", {"path": str(folder / name)}

    return make


def settings(text: str | bytes, name: str) -> Make:
    """A small log with a configuration of that text."""

    def make(folder: Path) -> Call:
        (folder / "train.jsonl").write_text("".join(RECORD % step for step in range(30)))
        (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode(errors="surrogatepass"))
        return "diagnose_run", {"path": str(folder / "train.jsonl"), "config": str(folder / name)}

    return make


def files(content: Mapping[str, str | bytes]) -> Make:
    """A folder of those files."""

    def make(folder: Path) -> Call:
        for name, text in content.items():
            (folder / "run" / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / "run" / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        return "diagnose_run", {"path": str(folder / "run")}

    return make


def _zst(data: bytes) -> bytes:
    """A Zstandard frame of one byte repeated, in blocks that say so (RFC 8878, section 3.1.1.2.2)."""
    blocks = [struct.pack("<I", (128 * 1024) << 3 | 2)[:3] + b"a" for _ in range(len(data) * 8)]
    last = struct.pack("<I", 1 << 3 | 3)[:3] + b"\n"
    return b"\x28\xb5\x2f\xfd\x00\x58" + b"".join(blocks) + last


def _npz(shape: tuple[int, ...], body: bytes, names: tuple[str, ...] = ("timesteps", "results", "ep_lengths")) -> bytes:
    header = f"{{'descr': '<i8', 'fortran_order': False, 'shape': {shape!r}}}".ljust(117).encode() + b"\n"
    member = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + body
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            archive.writestr(f"{name}.npy", member)
    return buffer.getvalue()


def _notebook(outputs: list[dict[str, Any]], cells: int = 1) -> str:
    cell = {"cell_type": "code", "source": ["train()"], "metadata": {}, "execution_count": 1, "outputs": outputs}
    return json.dumps({"cells": [cell] * cells, "nbformat": 4, "nbformat_minor": 5, "metadata": {}})


def _doubled(levels: int) -> bytes:
    """A pickle whose dictionaries each hold the one below twice: small, and endless when it is written out."""
    made: object = 1
    for _ in range(levels):
        made = {"a": made, "b": made}
    return pickle.dumps({"learning_rate": made, "seed": 1})


def _many_pickles(count: int) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for number in range(count):
            archive.writestr(f"a{number}/data.pkl", b".")
    return buffer.getvalue()


def _recursive() -> bytes:
    made: dict[str, object] = {"lr": 0.1}
    made["self"] = made
    made["list"] = [made, made]
    return pickle.dumps(made)


def _table(header: str, row: str, rows: int) -> str:
    return header + "\n" + (row + "\n") * rows


def _rows(step: str, count: int) -> str:
    return "".join(f"{step % number} loss: {3 - number / count:.5f}\n" for number in range(count))


def _shape(number: int) -> str:
    """Return a line unlike all before it, which yet has a loss."""
    return f"{bin(number)[2:].replace('0', '<').replace('1', '[')} w{number} loss={number % 7}.5"


BIG = 50_000
ROLES: dict[str, Make] = {
    "a name of 50,000 characters": lambda folder: log(
        json.dumps({"step": 1, "l" * BIG: 2.5}) + "\n" + RECORD % 2, "a.jsonl"
    )(folder),
    "a name of 50,000 parts": lambda folder: log(
        json.dumps({"step": 1, "train/" * BIG + "loss": 2.5}) + "\n", "a.jsonl"
    )(folder),
    "a name of 50,000 humps": lambda folder: log(json.dumps({"step": 1, "LossGrad" * BIG: 2.5}) + "\n", "a.jsonl")(
        folder
    ),
    "a name of 50,000 digits": lambda folder: log(json.dumps({"step": 1, "loss_" + "1" * BIG: 2.5}) + "\n", "a.jsonl")(
        folder
    ),
    "a name of underscores": lambda folder: log(json.dumps({"step": 1, "_" * BIG + "loss": 2.5}) + "\n", "a.jsonl")(
        folder
    ),
    "a name of units": lambda folder: log(json.dumps({"step": 1, "time (ms) " * 5000: 2.5}) + "\n", "a.jsonl")(folder),
    "100,000 columns of CSV": lambda folder: log(
        _table(",".join(f"m{i}/loss" for i in range(100_000)), ",".join("1" * 100_000), 3), "a.csv"
    )(folder),
    "100,000 columns of JSON": lambda folder: log(
        json.dumps({f"layer.{i}.grad_norm": i for i in range(100_000)}) + "\n", "a.jsonl"
    )(folder),
    "100,000 names in 100,000 records": lambda folder: log(
        "".join(f'{{"step": {i}, "m{i}": 1}}\n' for i in range(100_000)), "a.jsonl"
    )(folder),
    "100,000 tags in a long table": lambda folder: log(
        "step,tag,value\n" + "".join(f"{i},t{i},1\n" for i in range(100_000)), "a.csv"
    )(folder),
    "names of one look": lambda folder: log(
        "".join(json.dumps({"step": i, f"loss{chr(0x200B) * i}": 1}) + "\n" for i in range(3000)), "a.jsonl"
    )(folder),
    "columns of one name": lambda folder: log(_table(",".join(["loss"] * 5000), ",".join("1" * 5000), 5), "a.csv")(
        folder
    ),
}
FORMS: dict[str, Make] = {
    "TOML of deep lists": lambda folder: settings("a = " + "[" * 100_000 + "]" * 100_000, "a.toml")(folder),
    "TOML of deep tables": lambda folder: settings("a = " + "{a=" * 20_000 + "1" + "}" * 20_000, "a.toml")(folder),
    "TOML of a key of 100,000 parts": lambda folder: settings("a" + ".a" * 100_000 + " = 1", "a.toml")(folder),
    "TOML of 2,000 long keys": lambda folder: settings(
        "".join(f"a{'.a' * 900}.b{i} = 1\n" for i in range(1000)), "a.toml"
    )(folder),
    "TOML of a table of 50,000 parts": lambda folder: settings("[a" + ".a" * 50_000 + "]\nb = 1\n", "a.toml")(folder),
    "TOML of 100,000 tables": lambda folder: settings("".join(f"[[a.b]]\nc = {i}\n" for i in range(100_000)), "a.toml")(
        folder
    ),
    "TOML of a number of a million digits": lambda folder: settings("lr = " + "9" * 1_000_000, "a.toml")(folder),
    "TOML of underscores": lambda folder: settings("lr = " + "1_" * 500_000, "a.toml")(folder),
    "TOML of a string that does not end": lambda folder: settings('a = """' + '\\"' * 500_000, "a.toml")(folder),
    "TOML of dates": lambda folder: settings(
        "".join(f"a{i} = 9999-12-31T23:59:60Z\n" for i in range(20_000)), "a.toml"
    )(folder),
    "INI of line ends": lambda folder: settings("\n" * 2_000_000 + "[a]\nlr=1\n", "a.ini")(folder),
    "INI of spaces": lambda folder: settings(" \n" * 1_000_000 + "[a]\nlr=1\n", "a.ini")(folder),
    "INI of a section that does not end": lambda folder: settings("[" + "a " * 1_000_000, "a.ini")(folder),
    "INI of 100,000 sections": lambda folder: settings("".join(f"[s{i}]\nlr={i}\n" for i in range(100_000)), "a.ini")(
        folder
    ),
    "INI of a value of many lines": lambda folder: settings("[a]\nlr = 1\n" + " more\n" * 300_000, "a.ini")(folder),
    "INI of defaults without values": lambda folder: settings("[DEFAULT]\nfp16\nlr\n[train]\nlr = 0.1\n", "a.ini")(
        folder
    ),
    "INI that asks for itself": lambda folder: settings(
        "[a]\nlr = %(lr)s\nx = ${x}\n" + "".join(f"k{i} = %(k{i + 1})s\n" for i in range(999)), "a.ini"
    )(folder),
    "text of line ends": lambda folder: settings("\n" * 3_000_000, "args.txt")(folder),
    "text of tabs and brackets": lambda folder: settings("\t[" * 1_000_000, "args.txt")(folder),
    "Python of two million numbers": lambda folder: settings("lr = [" + "1," * 2_000_000 + "]\n", "args.py")(folder),
    "a command of a million words": lambda folder: settings("python train.py " + "--lr 1 " * 500_000, "args.txt")(
        folder
    ),
    "a command of open quotes": lambda folder: settings("python train.py\n" + "--a '\n" * 20_000, "args.txt")(folder),
    "a command of backslashes": lambda folder: settings("python train.py " + "\\\n" * 1_000_000, "args.sh")(folder),
    "a command of blanks behind backslashes": lambda folder: settings(
        "python train.py \\" + " " * 500_000 + "x", "args.sh"
    )(folder),
    "an option of a megabyte": lambda folder: settings("python a.py --" + "a-" * 500_000 + "=1", "args.sh")(folder),
    "a list of a megabyte": lambda folder: settings("python a.py --lr=[" + "1," * 500_000 + "]", "args.sh")(folder),
    "JSON of deep objects": lambda folder: settings('{"lr":' * 100_000 + "1" + "}" * 100_000, "a.json")(folder),
    "JSON of a name a hundred thousand times": lambda folder: settings(
        "{" + '"lr": 1,' * 100_000 + '"lr": 2}', "a.json"
    )(folder),
    "JSON of 200,000 names": lambda folder: settings(json.dumps({f"k{i}": i for i in range(200_000)}), "a.json")(
        folder
    ),
    "JSON of a number of a million digits": lambda folder: settings('{"lr": ' + "9" * 1_000_000 + "}", "a.json")(
        folder
    ),
    "a printed object of brackets": lambda folder: settings("Namespace(" * 20_000, "args.txt")(folder),
    "a printed object of strings that do not end": lambda folder: settings("{" + "'\\" * 100_000, "args.txt")(folder),
    "a printed object of blanks": lambda folder: settings("{" + " " * 1_000_000, "args.txt")(folder),
    "a printed object of enumerations": lambda folder: settings("Namespace(" + "<A: " * 50_000, "args.txt")(folder),
    "a printed object of commas": lambda folder: settings("{" + "," * 1_000_000 + "}", "args.txt")(folder),
    "an archive that asks for a password": lambda folder: settings(
        _many_pickles(1).replace(b"PK\x01\x02\x14\x03\x14\x00\x00", b"PK\x01\x02\x14\x03\x14\x00\x01"),
        "training_args.bin",
    )(folder),
    "a pickle that doubles": lambda folder: settings(_doubled(64), "training_args.bin")(folder),
    "a pickle inside itself": lambda folder: settings(_recursive(), "training_args.bin")(folder),
    "a pickle of deep lists": lambda folder: settings(
        b"\x80\x02" + b"](" * 20_000 + b"e" * 20_000 + b".", "training_args.bin"
    )(folder),
    "a pickle of nested tuples": lambda folder: settings(
        b"\x80\x02K\x01" + b"\x85" * 90_000 + b".", "training_args.bin"
    )(folder),
    "a pickle of a string of 8 EiB": lambda folder: settings(
        b"\x80\x04\x8d" + b"\xff" * 7 + b"\x7fabc.", "training_args.bin"
    )(folder),
    "a pickle of a name of a megabyte": lambda folder: settings(pickle.dumps({"lr" * 450_000: 1}), "training_args.bin")(
        folder
    ),
    "a pickle of copies": lambda folder: settings(b"\x80\x02}" + b"2" * 99_000 + b".", "training_args.bin")(folder),
    "an archive of a hundred thousand pickles": lambda folder: settings(
        _many_pickles(20_000),
        "training_args.bin",
    )(folder),
}
PRINTED: dict[str, Make] = {
    "a duration that is no number": lambda folder: log("step 1 loss 2.5 time: 0.000000.5 seconds\n" * 9)(folder),
    "fifty objects that are cut off": lambda folder: log(("{" + "'a': 1, " * 2400 + "\n") * 60)(folder),
    "a thousand Namespaces that are cut off": lambda folder: log("Namespace(a=[\n" * 3000)(folder),
    "blocks that are no configuration": lambda folder: log("key: 1\n\nother: 2\nx\n" * 3000)(folder),
    "commands that go on": lambda folder: log(("python train.py --lr 1 \\\n" * 3000) + RECORD % 1)(folder),
    "a hundred thousand printed configurations": lambda folder: log((f"Namespace({KNOWN})\n" + RECORD % 1) * 20_000)(
        folder
    ),
    "dots of Megatron": lambda folder: log("  lr " + "." * 1_000_000 + " 1\n")(folder),
}
ATTEMPTS: dict[str, Make] = {
    "100,000 lines of a resume": lambda folder: log(
        "".join(f"Resuming from checkpoint at step {i}\n{RECORD % i}" for i in range(50_000))
    )(folder),
    "100,000 starts of a process": lambda folder: log(
        "".join(f"torchrun train.py --lr {i}\n{RECORD % 1}" for i in range(50_000))
    )(folder),
    "100,000 counters that fall back": lambda folder: log("".join(RECORD % (i % 2) for i in range(100_000)), "a.jsonl")(
        folder
    ),
    "a counter that falls for ever": lambda folder: log(
        "".join(RECORD % (100_000 - i) for i in range(100_000)), "a.jsonl"
    )(folder),
    "100,000 errors": lambda folder: log("Traceback (most recent call last):\nValueError: x\n" * 50_000)(folder),
    "100,000 ends": lambda folder: log("Training completed. Do not forget to share your model\n" * 50_000 + RECORD % 1)(
        folder
    ),
    "steps of every size": lambda folder: log("".join(RECORD % 10**i for i in range(300)), "a.jsonl")(folder),
    "times that fall back": lambda folder: log(
        "".join(f"2024-01-{1 + i % 28:02} 10:00:00 step {i} loss 2.5\n" for i in range(30_000))
    )(folder),
    "100,000 ranks": lambda folder: log("".join(f"[rank{i}]: step {i} loss 2.5\n" for i in range(50_000)))(folder),
}
SHAPES: dict[str, Make] = {
    "200,000 distinct shapes of lines": lambda folder: log("\n".join(map(_shape, range(200_000))))(folder),
    "100,000 distinct words": lambda folder: log("".join(f"word{i}x loss {i}.5 z{i}\n" for i in range(100_000)))(
        folder
    ),
    "lines of 64 KiB of pairs": lambda folder: log(("a=1 " * 16_000 + "\n") * 10)(folder),
    "lines of 64 KiB of open brackets": lambda folder: log(("[" * 65_000 + "\n") * 10)(folder),
    "lines of 64 KiB of bars": lambda folder: log(("|" * 65_000 + "\n") * 10)(folder),
    "lines of 64 KiB of numbers": lambda folder: log(("1" * 65_000 + "\n") * 10)(folder),
    "lines of 64 KiB of blanks": lambda folder: log(("a" + " " * 65_000 + "b\n") * 10)(folder),
    "lines of 64 KiB of quotes": lambda folder: log(("{'" * 32_000 + "\n") * 10)(folder),
    "lines of 64 KiB of times": lambda folder: log(("00:00<" * 11_000 + "\n") * 10)(folder),
    "lines of 64 KiB of percent": lambda folder: log(("1%|" * 22_000 + "\n") * 10)(folder),
    "lines of 64 KiB of escapes": lambda folder: log(("\x1b[" * 32_000 + "\n") * 10)(folder),
    "lines of 64 KiB of words for a record": lambda folder: log(("reward" * 10_900 + "\n") * 16)(folder),
    "lines of 64 KiB of words for a run": lambda folder: log(("run " * 16_000 + "\n") * 16)(folder),
    "a bar of digits in the place of its times": lambda folder: log(
        ("Loss: 1.9: 0%|   | 3/1617 [00:" + "9" * 1900 + "]\n") * 16
    )(folder),
    "a megabyte of dates": lambda folder: log("2024-01-01 " * 100_000)(folder),
    "a table that never closes": lambda folder: log("+" + "-" * 200_000 + "+\n" + "| a | b |\n" * 50_000)(folder),
    "a bar of carriage returns": lambda folder: log(
        "".join(f"\r{i}%|#| {i}/100 [00:01<00:01, loss=2]" for i in range(50_000))
    )(folder),
    "MLPerf of deep JSON": lambda folder: log(
        ':::MLLOG {"key": "eval_accuracy", "value": ' + "[" * 100_000 + "\n" + ':::MLLOG {"key": 1}\n' * 9
    )(folder),
    "MLPerf of values of a megabyte": lambda folder: log(
        "\n".join([':::MLLOG {"key": "a", "value": "' + "x" * 1_000_000 + '"}'] * 3)
    )(folder),
}
CONTAINERS: dict[str, Make] = {
    "a gzip of a gigabyte": lambda folder: log(
        gzip.compress(b"step 1 loss 2.5\n") + gzip.compress(bytes(1 << 24)) * 64, "a.log.gz"
    )(folder),
    "a gzip of 100,000 members": lambda folder: log(gzip.compress(b"x\n") * 100_000, "a.log.gz")(folder),
    "a bzip2 of 10,000 members": lambda folder: log(bz2.compress(b"loss 1\n") * 10_000, "a.log.bz2")(folder),
    "a bzip2 of a gigabyte": lambda folder: log(bz2.compress(bytes(1 << 24)) * 64, "a.log.bz2")(folder),
    "an xz of a gigabyte": lambda folder: log(lzma.compress(bytes(1 << 24)) * 64, "a.log.xz")(folder),
    "an xz that wants four gigabytes": lambda folder: log(
        lzma.compress(
            b"loss 1\n" * 99, format=lzma.FORMAT_ALONE, filters=[{"id": lzma.FILTER_LZMA1, "dict_size": 1 << 28}]
        ),
        "a.log.xz",
    )(folder),
    "a zst of a gigabyte": lambda folder: log(_zst(bytes(1024)), "a.log.zst")(folder),
    "a zst of a window of terabytes": lambda folder: log(b"\x28\xb5\x2f\xfd\x00\xff" + b"\x01\x00\x00", "a.log.zst")(
        folder
    ),
    "a gzip in a gzip in a gzip": lambda folder: log(
        gzip.compress(gzip.compress(gzip.compress(b"loss 1\n"))), "a.log.gz"
    )(folder),
    "a gzip of one line": lambda folder: log(gzip.compress(b"loss=1 " * 10_000_000), "a.log.gz")(folder),
    "100 rotated parts that are bombs": lambda folder: files(
        {f"train.log.{i}.gz": gzip.compress(bytes(1 << 23)) for i in range(1, 40)} | {"train.log": RECORD % 1}
    )(folder),
    "a notebook of an output of 30 MB": lambda folder: log(
        _notebook([{"output_type": "stream", "name": "stdout", "text": "loss 1\n" * 4_000_000}]), "a.ipynb"
    )(folder),
    "a notebook of 100,000 cells": lambda folder: log(
        _notebook([{"output_type": "stream", "text": ["step 1 loss 2\n"]}], 30_000), "a.ipynb"
    )(folder),
    "a notebook of 100,000 outputs": lambda folder: log(
        _notebook([{"output_type": "stream", "text": "loss 2\n"}] * 100_000), "a.ipynb"
    )(folder),
    "a notebook of deep lists": lambda folder: log(
        '{"cells": [{"cell_type": "code", "outputs": ' + "[" * 90_000 + "]" * 90_000 + "}]}", "a.ipynb"
    )(folder),
    "a notebook of an unclosed table": lambda folder: log(
        _notebook([{"output_type": "display_data", "data": {"text/html": "<table><tr><th>Step" + "<td>" * 200_000}}]),
        "a.ipynb",
    )(folder),
    "a notebook of nested tables": lambda folder: log(
        _notebook([{"output_type": "display_data", "data": {"text/html": "<table>" * 50_000}}]), "a.ipynb"
    )(folder),
    "a notebook of open comments": lambda folder: log(
        _notebook([{"output_type": "display_data", "data": {"text/html": "<table><!--" + "<!-" * 200_000}}]), "a.ipynb"
    )(folder),
    "a notebook of wrong types": lambda folder: log(
        '{"nbformat": 4, "cells": [{"cell_type": "code", "outputs": [1, null, {"text": [1, {}]}, '
        '{"output_type": "error", "traceback": {"a": 1}}]}, 7]}',
        "a.ipynb",
    )(folder),
    "a notebook of a traceback of a megabyte": lambda folder: log(
        _notebook([{"output_type": "error", "ename": "E", "evalue": "x", "traceback": ["\x1b[31m" * 200_000]}]),
        "a.ipynb",
    )(folder),
    "evaluations that claim a terabyte": lambda folder: log(_npz((1 << 20, 1 << 20), b"\0" * 64), "evaluations.npz")(
        folder
    ),
    "evaluations of a hundred megabytes": lambda folder: log(
        _npz((3_000_000, 5), bytes(3_000_000 * 40)), "evaluations.npz"
    )(folder),
    "evaluations of no dimension": lambda folder: log(_npz((), b"\0" * 8), "evaluations.npz")(folder),
    "evaluations of sixty-four dimensions": lambda folder: log(_npz((1,) * 64, b"\0" * 8), "evaluations.npz")(folder),
    "evaluations below nothing": lambda folder: log(_npz((-1, 5), b"\0" * 80), "evaluations.npz")(folder),
}
FOLDERS: dict[str, Make] = {
    "10,000 logs": lambda folder: files({f"run{i}/train.jsonl": RECORD % 1 for i in range(10_000)})(folder),
    "10,000 logs beside each other": lambda folder: files({f"train{i}.jsonl": (RECORD % 1) * 3 for i in range(10_000)})(
        folder
    ),
    "10,000 configurations": lambda folder: files(
        {f"config{i}.yaml": "lr: 1\nbatch_size: 2\n" for i in range(10_000)} | {"a.jsonl": RECORD % 1}
    )(folder),
    "a folder of 300 levels": lambda folder: files({"/".join(["d"] * 300) + "/train.jsonl": RECORD % 1})(folder),
    "10,000 rotated parts": lambda folder: files(
        {f"train.log.{i}": "step 1 loss 2\n" for i in range(1, 10_000)} | {"train.log": RECORD % 1}
    )(folder),
    "a part of a number of many digits": lambda folder: files(
        {"train.log." + "9" * 200: "loss 1\n", "train.log.-1": "x", "train.log": RECORD % 1}
    )(folder),
    "every configuration there is": lambda folder: files(
        dict.fromkeys(
            (
                "config.json",
                "config.yaml",
                "config.toml",
                "config.ini",
                "args.txt",
                "cmd.sh",
                "hparams.yaml",
                "params.json",
            ),
            "[" * 50000,
        )
        | {"a.jsonl": RECORD % 1}
    )(folder),
}
KINDS = ROLES | FORMS | PRINTED | ATTEMPTS | SHAPES | CONTAINERS | FOLDERS
