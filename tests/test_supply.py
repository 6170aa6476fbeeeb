"""What is installed can be pinned by hash, audited without a network, and listed."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT


def ran(script: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(script), *options], capture_output=True, text=True, check=False)


def copy(folder: Path) -> Path:
    """Copy the audit and what it reads."""
    (folder / "packaging").mkdir()
    for name in ("packaging/audit.py", "requirements.lock", "constraints.txt"):
        shutil.copy(ROOT / name, folder / name)
    return folder / "packaging" / "audit.py"


def test_the_lock_is_complete_and_agrees_with_the_constraints(tmp_path: Path) -> None:
    done = ran(copy(tmp_path))
    assert "not one version with hashes" not in done.stdout
    assert "in constraints.txt" not in done.stdout
    assert " packages are locked" in done.stdout


def test_the_audit_finds_a_requirement_without_hash_and_one_at_another_version(tmp_path: Path) -> None:
    audit = copy(tmp_path)
    lock = tmp_path / "requirements.lock"
    lock.write_text(lock.read_text().replace("pydantic==", "pydantic==0.") + "evil\nworse==1.0\n")
    done = ran(audit)
    assert done.returncode == 1
    assert "evil: not one version with hashes" in done.stdout
    assert "worse==1.0: not one version with hashes" in done.stdout
    assert "pydantic: 0." in done.stdout


def test_the_audit_finds_a_file_that_was_changed(tmp_path: Path) -> None:
    audit = copy(tmp_path)
    site = tmp_path / "site"
    info = site / "h11-0.16.0.dist-info"
    info.mkdir(parents=True)
    (site / "h11.py").write_text("changed = True\n")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: h11\nVersion: 0.16.0\n")
    (info / "RECORD").write_text("h11.py,sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,0\n")
    code = f"import sys, runpy; sys.path.insert(0, {str(site)!r}); runpy.run_path({str(audit)!r}, run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "h11: h11.py has been changed" in done.stdout


def test_the_bill_of_materials_lists_what_is_required_with_versions() -> None:
    done = ran(ROOT / "packaging" / "sbom.py", "--extra", "plot")
    bill = json.loads(done.stdout)
    parts = {one["name"].lower(): one for one in bill["components"]}
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    assert bill["metadata"]["component"]["name"] == "mldebug-mcp"
    assert {"mcp", "numpy", "pydantic", "matplotlib", "anyio"} <= set(parts)
    assert "pytest" not in parts
    assert parts["pydantic"]["purl"] == f"pkg:pypi/pydantic@{parts['pydantic']['version']}"
    listed = {one["bom-ref"] for one in bill["components"]} | {bill["metadata"]["component"]["bom-ref"]}
    assert {one["ref"] for one in bill["dependencies"]} == listed
    assert {need for one in bill["dependencies"] for need in one["dependsOn"]} <= listed


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_the_provenance_names_what_was_built_of_which_commit_with_which_packages(tmp_path: Path) -> None:
    (tmp_path / "packaging").mkdir()
    for name in ("packaging/provenance.py", "requirements.lock", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path / name)
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "a"]):
        subprocess.run([*git, *command], check=True)
    wheel = tmp_path / "a.whl"
    wheel.write_bytes(b"wheel")

    told = json.loads(ran(tmp_path / "packaging" / "provenance.py", str(wheel)).stdout)

    assert told["subject"] == [{"name": "a.whl", "digest": {"sha256": hashlib.sha256(b"wheel").hexdigest()}}]
    source, lock, _ = told["predicate"]["buildDefinition"]["resolvedDependencies"]
    commit = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
    assert source["digest"] == {"gitCommit": commit}
    assert lock["digest"]["sha256"] == hashlib.sha256((ROOT / "requirements.lock").read_bytes()).hexdigest()

    (tmp_path / "requirements.lock").write_text("changed")
    refused = ran(tmp_path / "packaging" / "provenance.py", str(wheel))
    assert refused.returncode == 1
    assert "commit first" in refused.stderr
