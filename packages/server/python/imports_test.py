"""Checks that the files of a directory have no circular imports, and that packages have the names that are imported from them.

Usage: `python imports_test.py [DIRECTORY]`. Needs only the standard library.

Imports inside functions and imports only for annotations count too.
"""

from __future__ import annotations

import ast
import os
import re
import sys
from typing import TYPE_CHECKING

# Scripts import the modules of this package by their names without this prefix.
_OFFERED = "galatea_frameworks.toolkit.offered."

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Dict

    # By module: the modules of the directory that it imports, each with the line of the import.
    Graph = Dict[str, Dict[str, int]]


def modules(directory: str) -> dict[str, str]:
    """Returns the Python files in the directory tree, by module name."""
    found = {}
    for folder, _, names in os.walk(directory):
        for name in names:
            if name.endswith(".py"):
                path = os.path.join(folder, name)
                parts = os.path.relpath(path, directory)[: -len(".py")].split(os.sep)
                found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(module: str, path: str) -> Iterator[tuple[str, str, int]]:
    """Yields each import of the file: a module, a name that may be a module in it ("" for none), and the line."""
    package = module.split(".")
    if not path.endswith("__init__.py"):
        package.pop()
    with open(path, encoding="utf-8") as file:
        tree = ast.parse(file.read(), path)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, "", node.lineno
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) + 1 - node.level] if node.level else []
            source = ".".join(above + ([node.module] if node.module else []))
            for alias in node.names:
                yield source, alias.name, node.lineno


def graph_of(paths: dict[str, str]) -> Graph:
    """Returns the import graph: for each module, the modules that it imports."""
    graph = {}
    for module, path in paths.items():
        lines = graph[module] = {}
        for source, name, line in imported(module, path):
            # `from package import name` counts as an import of the module `name`, or of the package's own file if there is no such module.
            for target in ("%s.%s" % (source, name), source):
                found = next((one for one in (target, _OFFERED + target) if one in paths), None)
                if found is not None:
                    lines.setdefault(found, line)
                    break
    return graph


def circle_in(graph: Graph) -> list[str]:
    """Returns the modules of a shortest cycle, in which the first module is repeated at the end; [] if there is no cycle."""
    shortest = []
    for start in graph:
        paths = [[start]]
        seen = set()
        for path in paths:
            for name in graph[path[-1]]:
                if name == start and (not shortest or len(path) + 1 < len(shortest)):
                    shortest = [*path, start]
                if name not in seen:
                    seen.add(name)
                    paths.append([*path, name])
    return shortest


def missing_in(paths: dict[str, str]) -> list[str]:
    """Returns the imports of names that a package of the directory neither has as a module nor defines in its own file."""
    missing = []
    for module, path in paths.items():
        for source, name, line in imported(module, path):
            own = next((paths[one] for one in (source, _OFFERED + source) if one in paths), "")
            if name in ("", "*") or not own.endswith("__init__.py") or "%s.%s" % (source, name) in paths:
                continue
            with open(own, encoding="utf-8") as file:
                text = file.read()
            if "import *" not in text and not re.search(r"\b%s\b" % re.escape(name), text):
                missing.append("%s:%d imports %s from %s" % (path, line, name, source))
    return missing


def main() -> None:
    """Exits with an error that lists the imports of a cycle, or imports of missing names, if there are any."""
    directory = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))
    paths = modules(directory)
    missing = missing_in(paths)
    if missing:
        sys.exit("\n".join(["These names do not exist:", *missing]))
    graph = graph_of(paths)
    circle = circle_in(graph)
    if circle:
        steps = [
            "%s:%d imports %s" % (os.path.relpath(paths[importer], directory), graph[importer][name], name)
            for importer, name in zip(circle, circle[1:])
        ]
        sys.exit("\n".join(["These files import each other in a circle:", *steps]))


if __name__ == "__main__":
    main()
