"""Writes the lock of a framework's packages: `framework_lock.py UV OUT --requires P... --without P...`.

`uv lock` chooses the versions, for CPython on Linux; what is written has each version with the sums of its wheels, and no address.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

import tomllib

PROJECT = """[project]
name = "framework"
version = "0"
requires-python = "%s"
dependencies = %s
[tool.uv]
environments = ["sys_platform == 'linux' and implementation_name == 'cpython'"]
"""


def main() -> None:
    """Resolves the versions and writes the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("uv")
    parser.add_argument("out", type=Path)
    parser.add_argument("--python", default=">=3.11,<3.15")
    parser.add_argument("--requires", nargs="+", required=True)
    parser.add_argument("--without", nargs="*", default=[])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        Path(directory, "pyproject.toml").write_text(PROJECT % (options.python, json.dumps(options.requires)))
        subprocess.run([options.uv, "lock", "--quiet"], cwd=directory, check=True)
        export = [options.uv, "export", "--quiet", "--format", "requirements-txt", "--no-emit-project", "--no-hashes"]
        lines = subprocess.run(
            [*export, "--no-annotate"], cwd=directory, check=True, capture_output=True, text=True
        ).stdout.splitlines()
        packages = tomllib.loads(Path(directory, "uv.lock").read_text())["package"]
    found = {(one["name"], one["version"]): one for one in packages}
    pins = []
    for line in lines:
        if "==" not in line or line.startswith("#"):
            continue
        pin, _, marker = line.partition(" ; ")
        name, _, version = pin.strip().partition("==")
        if name in options.without:
            continue
        wheels = [
            {"file": wheel["url"].rpartition("/")[2], "bytes": wheel["size"], "sha256": wheel["hash"].partition(":")[2]}
            for wheel in found[name, version].get("wheels", [])
            if "313t" not in wheel["url"] and "314t" not in wheel["url"] and "musllinux" not in wheel["url"]
        ]
        pins.append({"name": name, "version": version, "marker": marker, "wheels": wheels})
    lock = {"requires": options.requires, "python": options.python, "without": options.without, "pins": pins}
    options.out.write_text(json.dumps(lock, indent=1) + "\n")


if __name__ == "__main__":
    main()
