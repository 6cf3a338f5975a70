import assert from "node:assert/strict";
import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { referencePages } from "./reference/pages.ts";
import { root } from "./source-tree.ts";

const readmeLinesMax = 150;
const isElsewhere = (path: string) => /(^|\/)(node_modules|\.galatea)(\/|$)/.test(path);
const documents = globSync("**/*.md", { cwd: root, exclude: isElsewhere });
const textOf = (path: string) => readFileSync(join(root, path), "utf8");

/** Returns the anchors of a document's headings, as code hosts and VitePress generate them. */
function anchorsOf(path: string): readonly string[] {
  const prose = textOf(path).replaceAll(/^```[\s\S]*?^```/gm, "");
  return [...prose.matchAll(/^#+ (.*)$/gm)].map(([, heading = ""]) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, "")
      .replaceAll(" ", "-"),
  );
}

test("each relative link of a document leads to a file, and each anchor to a heading of it", () => {
  const isAlive = (path: string, link: string) => {
    const [target = "", anchor] = link.split("#");
    const file = target === "" ? path : join(dirname(path), target);
    return existsSync(join(root, file)) && (anchor === undefined || anchorsOf(file).includes(anchor));
  };
  const broken = documents.flatMap((path) =>
    [...textOf(path).matchAll(/\]\((?!https?:)([^)\s]+)/g)].flatMap(([, link = ""]) =>
      isAlive(path, link) ? [] : [`${path}: ${link}`],
    ),
  );
  assert.deepEqual(broken, []);
});

test(`README.md has at most ${readmeLinesMax} lines and links to each folder of docs`, () => {
  const readme = textOf("README.md");
  assert.ok(readme.trimEnd().split("\n").length <= readmeLinesMax);
  const folders = new Set(documents.filter((path) => /^docs\/./.test(path)).map((path) => dirname(path)));
  folders.delete("docs");
  assert.deepEqual(
    [...folders].filter((folder) => !readme.includes(`](${folder})`)),
    [],
  );
});

test("each file of the repository that a document names in backquotes exists", () => {
  const paths = /`((?:bench|conformance|docs|examples|packages|scripts)\/[\w./-]+\.\w+)`/g;
  const missing = documents
    .filter((path) => path !== "CHANGELOG.md")
    .flatMap((path) =>
      [...textOf(path).matchAll(paths)].flatMap(([, file = ""]) =>
        existsSync(join(root, file)) ? [] : [`${path}: ${file}`],
      ),
    );
  assert.deepEqual(missing, []);
});

test("each row of a table of steps names a function or class that its file has", () => {
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

/** The largest number of files that a journey may pass through. */
const journeyFilesMax = {
  "one-inference": 28,
  "cold-multi-model-invocation": 35,
  "create-endpoint": 30,
  "canary-update": 20,
};

for (const [journey, filesMax] of Object.entries(journeyFilesMax)) {
  test(`the table of docs/architecture/${journey}.md names at most ${filesMax} files for each backend`, () => {
    const rows = [...textOf(`docs/architecture/${journey}.md`).matchAll(/^\| (.*?) \| `(packages\/[^`]+)` \|/gm)];
    assert.ok(rows.length > 0);
    for (const [backend, other] of [
      ["Python", "ONNX"],
      ["ONNX", "Python"],
    ] as const) {
      const files = new Set(rows.flatMap(([, step = "", file = ""]) => (step.startsWith(`${other}: `) ? [] : [file])));
      assert.ok(files.size <= filesMax, `${files.size} files for ${backend} models`);
    }
  });
}

test("the pages of docs/reference are those that `npm run reference` writes from the tables in the code", async () => {
  const pages = await referencePages();
  assert.deepEqual(
    documents.filter((path) => path.startsWith("docs/reference/")).toSorted(),
    [...pages.keys()].map((name) => `docs/reference/${name}`).toSorted(),
  );
  const stale = [...pages].flatMap(([name, text]) => (textOf(`docs/reference/${name}`) === text ? [] : [name]));
  assert.deepEqual(stale, [], "run npm run reference");
});
