import assert from "node:assert/strict";
import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { root } from "./source-tree.ts";

const readmeLinesMax = 150;
const isElsewhere = (path: string) => /(^|\/)(node_modules|\.galatea)(\/|$)/.test(path);
const documents = globSync("**/*.md", { cwd: root, exclude: isElsewhere });
const textOf = (path: string) => readFileSync(join(root, path), "utf8");

test("each relative link of a document leads to a file", () => {
  const broken = documents.flatMap((path) =>
    [...textOf(path).matchAll(/\]\((?!https?:|#)([^)#\s]+)/g)].flatMap(([, target = ""]) =>
      existsSync(join(root, dirname(path), target)) ? [] : [`${path}: ${target}`],
    ),
  );
  assert.deepEqual(broken, []);
});

test(`README.md has at most ${readmeLinesMax} lines and links to each guide`, () => {
  const readme = textOf("README.md");
  assert.ok(readme.trimEnd().split("\n").length <= readmeLinesMax);
  assert.deepEqual(
    documents.filter((path) => path.startsWith("docs/") && !readme.includes(`](${path})`)),
    [],
  );
});

test("each row of a walk names a function or class that its file has", () => {
  const rows = documents
    .filter((path) => path.startsWith("docs/architecture/"))
    .flatMap((path) => [...textOf(path).matchAll(/^\| .*? \| `(packages\/[^`]+)` \| (?:`([^`]+)` \|)?/gm)]);
  assert.ok(rows.length > 0);
  const has = (file: string, name: string) =>
    name.split(".").every((word) => new RegExp(`(?<![\\w#])${RegExp.escape(word)}\\b`).test(textOf(file)));
  assert.deepEqual(
    rows.flatMap(([row, file = "", name]) => (name !== undefined && has(file, name) ? [] : [row])),
    [],
  );
});
