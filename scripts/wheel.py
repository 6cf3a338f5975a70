"""Packs a Python wheel that carries Node and an installed npm package: `wheel.py FILES VERSION TARGET`.

FILES has a folder node_modules with everything that runs. The wheel puts it into a Python package `galatea`, whose only code starts the
command. Equal files give equal bytes.
"""

import base64
import hashlib
import pathlib
import sys
import zipfile

# Node 24 needs glibc 2.28.
TAG = "py3-none-manylinux_2_28_x86_64"
LAUNCHER = '''"""The command `galatea`, with the Node that this package carries."""

import os
import sys


def main():
    command = os.path.join(os.path.dirname(os.path.realpath(__file__)), "node_modules", "galatea", "bin", "galatea")
    os.execv(command, [command, *sys.argv[1:]])
'''


def write(wheel: zipfile.ZipFile, name: str, content: bytes, executable: bool = False) -> str:
    """Adds a file, and returns its line of RECORD."""
    entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    entry.external_attr = (0o100755 if executable else 0o100644) << 16
    entry.compress_type = zipfile.ZIP_DEFLATED
    wheel.writestr(entry, content)
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(content)}\n"


def main() -> None:
    files, version, target = pathlib.Path(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3])
    information = f"galatea-{version}.dist-info"
    metadata = {
        "METADATA": (
            f"Metadata-Version: 2.1\nName: galatea\nVersion: {version}\nLicense: Apache-2.0\nRequires-Python: >=3.9\n"
            "Summary: An open, self-hosted model server and hosting platform\n"
        ),
        "WHEEL": f"Wheel-Version: 1.0\nGenerator: galatea\nRoot-Is-Purelib: false\nTag: {TAG}\n",
        "entry_points.txt": "[console_scripts]\ngalatea = galatea:main\n",
    }
    with zipfile.ZipFile(target / f"galatea-{version}-{TAG}.whl", "w") as wheel:
        record = write(wheel, "galatea/__init__.py", LAUNCHER.encode())
        for path in sorted(each for each in files.rglob("*") if each.is_file()):
            executable = path.stat().st_mode & 0o111 != 0
            record += write(wheel, f"galatea/{path.relative_to(files)}", path.read_bytes(), executable)
        for name, text in metadata.items():
            record += write(wheel, f"{information}/{name}", text.encode())
        write(wheel, f"{information}/RECORD", f"{record}{information}/RECORD,,\n".encode())


main()
