import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { join } from "node:path";
import { test } from "node:test";
import { root } from "../../scripts/source-tree.ts";
import { blocksOf, runnableLanguages, stepsOf } from "./blocks.ts";
import { documents } from "./documents.ts";
import { missingLine } from "./printed-output.ts";

/** Maximum number of blocks that no test runs. */
const notRunMax = 7;

const all = documents.flatMap((path) =>
  blocksOf(readFileSync(join(root, path), "utf8")).map((block) => ({ ...block, name: `${path}:${block.line}` })),
);

test(`at most ${notRunMax} code blocks of the documents are not run, and each of those gives its reason`, (t) => {
  const notRun = all.flatMap(({ notRun, name }) => (notRun === null ? [] : [`${name}: ${notRun}`]));
  for (const each of notRun) t.diagnostic(`not run: ${each}`);
  assert.ok(notRun.length <= notRunMax, notRun.join("\n"));
});

test("every code block names its language by the one name that the tests know (sh, not bash; python, not py)", () => {
  const languages = [
    "text",
    "mermaid",
    "json",
    "protobuf",
    "yaml",
    "ini",
    "dockerfile",
    "layers",
    ...runnableLanguages,
  ];
  assert.deepEqual(
    all.flatMap(({ language, name }) => (languages.includes(language) ? [] : [`${name}: ${language}`])),
    [],
  );
});

/** Returns the syntax error of a block; "" if there is none. */
function syntaxFault(language: string, text: string): string {
  if (language === "ts" || language === "js") {
    try {
      stripTypeScriptTypes(text);
      return "";
    } catch (error) {
      return String(error);
    }
  }
  const [program, ...args]: readonly [string, ...string[]] =
    language === "sh" ? ["bash", "-n"] : ["python3", "-c", "import ast; ast.parse(open(0).read())"];
  return spawnSync(program, args, { input: text, encoding: "utf8" }).stderr;
}

test("all code blocks, run or not, are valid in their language", () => {
  const faults = all
    .filter(({ language }) => runnableLanguages.includes(language))
    .flatMap(({ name, language, text }) => {
      const fault = syntaxFault(language, text);
      return fault === "" ? [] : [`${name}: ${fault}`];
    });
  assert.deepEqual(faults, []);
});

test("the words after a block's language decide whether the block is saved, run, or compared with the output", () => {
  const markdown = [
    "```sh", "first", "```", "```text", "printed", "```",
    "- in a list", "  ```python file=a/b.py", "  import os", "    os", "  ```",
    "```sh no-run: needs a GPU", "second", "```", "```text", "not compared", "```",
  ].join("\n"); // prettier-ignore
  const blocks = blocksOf(markdown);
  assert.deepEqual(
    blocks.map(({ line, language, text, notRun, file }) => [line, language, text, notRun, file]),
    [
      [1, "sh", "first\n", null, null],
      [4, "text", "printed\n", null, null],
      [8, "python", "import os\n  os\n", null, "a/b.py"],
      [12, "sh", "second\n", "needs a GPU", null],
      [15, "text", "not compared\n", null, null],
    ],
  );
  assert.deepEqual(
    stepsOf(blocks).map(({ block, printed }) => [block.line, printed.map(({ line }) => line)]),
    [
      [1, [4]],
      [8, []],
    ],
  );
});

test("a document's output matches if its lines occur in order; times, sizes, dates and the home directory may differ", () => {
  const shown = `I1124 22:32:46.551000 7708 galatea] "loaded"\n  data: /root/.local\nall  of 3 in 507 ms, 86 MiB (…)\n2026-11-24-22-46-30 InService`;
  const output = `noise\nI0102 03:04:05.000001 12 galatea] "loaded"\ndata: /scratch/home/.local\nmore\nall of 3 in 1.2 s, 900 KiB (x y)\n2027-01-01-00-00-00 InService\n`;
  assert.equal(missingLine(shown, output, "/scratch/home"), null);
  assert.equal(missingLine("all of 4 in 1 s, 1 B (…)", output, "/scratch/home"), "all of 4 in 1 s, 1 B (…)");
  assert.equal(missingLine("more\ndata: …", output, "/scratch/home"), "data: …");
});
