import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { test } from "node:test";
import {
  exportsOf,
  filesBelow,
  isDoor,
  isGenerated,
  lineAt,
  programs,
  reachedFrom,
  root,
  source,
  type SourceFile,
} from "./source-tree.ts";

const linesMax = 500;
const bannedNames = /(^|[-/])(manager|helpers?|utils?|common|misc)([-./]|$)/;

const everything = filesBelow(source);
const sources = everything.filter((file) => !isGenerated(file));
const at = (file: SourceFile, line: number) => `${file.name}:${line}`;
const none = (problems: readonly string[]) => assert.deepEqual(problems, []);
/** The first folder that an import leads to, and the rest of its path there; null where it leads out of the source. */
function placeOf(target: string | null): { readonly folder: string; readonly rest: string } | null {
  const path = target === null ? ".." : relative(source, target);
  if (path.startsWith("..")) return null;
  const [folder, ...rest] = path.split("/") as [string];
  return { folder, rest: rest.join("/") };
}

function layers(): Map<string, Set<string>> {
  const block = /```layers\n([\s\S]*?)```/.exec(readFileSync(join(root, "ARCHITECTURE.md"), "utf8"))?.[1];
  assert.ok(block, "ARCHITECTURE.md has a layers block");
  return new Map(
    block
      .trim()
      .split("\n")
      .map((line) => {
        const [folder, allowed] = line.split(":") as [string, string];
        return [folder.trim(), new Set(allowed.trim().split(/\s+/).filter(Boolean))];
      }),
  );
}

test("folders import only what the layers block allows, and the block allows nothing that no folder needs", () => {
  const allowed = layers();
  const unused = new Set([...allowed].flatMap(([folder, may]) => [...may].map((each) => `${folder}: ${each}`)));
  const problems: string[] = [];
  for (const file of sources) {
    if (file.folder === "main.ts" || file.isTest) continue;
    const may = allowed.get(file.folder);
    if (may === undefined) problems.push(`${file.folder} has no line in the layers block`);
    for (const { line, target } of file.imports) {
      const place = placeOf(target);
      if (place === null || place.folder === file.folder) continue;
      unused.delete(`${file.folder}: ${place.folder}`);
      unused.delete(`${file.folder}: *`);
      if (may && !may.has("*") && !may.has(place.folder))
        problems.push(`${at(file, line)}: ${file.folder} may not import ${place.folder}`);
    }
  }
  none([...problems, ...[...unused].map((each) => `${each} is allowed and not needed`)]);
});

test("another folder is entered through its door", () => {
  const problems: string[] = [];
  for (const file of sources) {
    // main.ts sizes the thread pool before any door is opened.
    if (file.folder === "main.ts") continue;
    for (const { line, target, specifier } of file.imports) {
      const place = placeOf(target);
      if (place === null || place.folder === file.folder || place.rest === "") continue;
      // A contract's suite and a fixture are doors for tests, of what no product code may have.
      if (/\.contract\.ts$|-fixture\.ts$/.test(place.rest) && !file.isPublished) continue;
      if (!/(^|\/)index\.ts$/.test(place.rest)) problems.push(`${at(file, line)}: imports past the door: ${specifier}`);
    }
  }
  none(problems);
});

test(`no program is longer than ${linesMax} lines or has a name that says nothing, whatever its language`, () => {
  const found = programs();
  for (const language of [".ts", ".py", ".js"])
    assert.ok(
      found.some((path) => path.endsWith(language)),
      language,
    );
  none(
    found.filter(
      (path) =>
        bannedNames.test(path) || readFileSync(join(root, path), "utf8").trimEnd().split("\n").length > linesMax,
    ),
  );
});

test("only app/ reads the environment", () => {
  none(
    sources
      .filter((file) => file.folder !== "app" && !file.isTest && file.text.includes("process.env"))
      .map((file) => file.name),
  );
});

test("folders that are given a clock do not look at another", () => {
  const clocked = new Set(["scheduling", "engine", "hosting", "metrics", "inference"]);
  const otherTime = /\b(Date\.now|setTimeout|setInterval|AbortSignal\.timeout)\s*\(/g;
  none(
    sources
      .filter((file) => clocked.has(file.folder) && file.isPublished)
      .flatMap((file) => [...file.text.matchAll(otherTime)].map((match) => at(file, lineAt(file.text, match.index)))),
  );
});

test("every dependency has its line in DEPENDENCIES.md", () => {
  const page = readFileSync(join(root, "DEPENDENCIES.md"), "utf8");
  const problems: string[] = [];
  const sets = ["conformance/environments/javascript-sdk/package.json"];
  for (const manifest of ["package.json", "server/package.json", ...sets]) {
    const parsed = JSON.parse(readFileSync(join(root, manifest), "utf8")) as Record<string, Record<string, string>>;
    for (const kind of ["dependencies", "devDependencies", "optionalDependencies"]) {
      for (const name of Object.keys(parsed[kind] ?? {})) if (!page.includes(`\`${name}\``)) problems.push(name);
    }
  }
  none(problems);
});

test("every published file is reached from main.ts or an example: its own test and its folder's door keep none alive", () => {
  const examples = filesBelow(join(root, "examples"));
  const entries = [join(source, "main.ts"), ...examples.map(({ path }) => path)];
  const reached = entries.map((entry) => reachedFrom(entry, [...everything, ...examples]));
  none(
    sources.filter((file) => file.isPublished && !reached.some((each) => each.has(file.path))).map(({ name }) => name),
  );
});

test("a door exports no value that nobody takes", () => {
  const users = ["conformance", "bench", "examples", "scripts"].flatMap((each) => filesBelow(join(root, each)));
  const taken = new Set<string>();
  for (const { target, names } of [...everything, ...users].flatMap((file) => file.imports))
    for (const name of names ?? ["*"]) taken.add(`${target} ${name}`);
  const problems: string[] = [];
  for (const door of sources.filter(isDoor)) {
    if (taken.has(`${door.path} *`)) continue;
    for (const [, clause] of door.text.matchAll(/^export (\{[^}]*\}) from/gm)) {
      const values = (clause as string)
        .slice(1, -1)
        .split(",")
        .map((each) => each.trim());
      for (const each of values.filter((one) => /^\w+( as \w+)?$/.test(one))) {
        const name = each.replace(/^\w+ as /, "");
        if (!taken.has(`${door.path} ${name}`)) problems.push(`${door.name}: ${name}`);
      }
    }
  }
  none(problems);
});

test("every fixture and contract is imported", () => {
  const users = ["conformance", "bench", "examples", "scripts"].flatMap((each) => filesBelow(join(root, each)));
  const imported = new Set([...sources, ...users].flatMap((file) => file.imports.map(({ target }) => target)));
  none(
    sources.filter((file) => !file.isPublished && !file.isTest && !imported.has(file.path)).map((file) => file.name),
  );
});

test("an exported name is one thing in the whole tree", () => {
  const places = new Map<string, string[]>();
  for (const file of sources) {
    if (isDoor(file) || !file.isPublished) continue;
    for (const { name, line } of exportsOf(file)) places.set(name, [...(places.get(name) ?? []), at(file, line)]);
  }
  none([...places].flatMap(([name, found]) => (found.length === 1 ? [] : [`${name}: ${found.join(", ")}`])));
});
