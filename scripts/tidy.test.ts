import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { test } from "node:test";

const root = resolve(import.meta.dirname, "..");
const source = join(root, "server/src");
const linesMax = 500;
const bannedNames = /(^|[-/])(manager|helpers?|utils?|common|misc)([-./]|$)/;

interface SourceFile {
  readonly path: string;
  readonly folder: string;
  readonly text: string;
  readonly imports: readonly { readonly line: number; readonly specifier: string }[];
}

function files(directory: string): string[] {
  return readdirSync(directory, { withFileTypes: true, recursive: true })
    .filter((each) => each.isFile() && each.name.endsWith(".ts"))
    .map((each) => join(each.parentPath, each.name))
    .filter((path) => !/\/(gen|dist|node_modules)\//.test(path));
}

function read(path: string): SourceFile {
  const text = readFileSync(path, "utf8");
  const imports = [...text.matchAll(/(?:from|import)\s*\(?\s*"([^"]+)"/g)].map((match) => ({
    line: text.slice(0, match.index).split("\n").length,
    specifier: match[1] as string,
  }));
  return { path, folder: relative(source, path).split("/")[0] as string, text, imports };
}

const sources = files(source).map(read);
const at = (file: SourceFile, line: number) => `${relative(root, file.path)}:${line}`;
const none = (problems: readonly string[]) => assert.deepEqual(problems, []);

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

test("folders import only what the layers block allows", () => {
  const allowed = layers();
  const problems: string[] = [];
  for (const file of sources) {
    if (file.folder === "main.ts" || file.path.endsWith(".test.ts")) continue;
    const may = allowed.get(file.folder);
    if (may === undefined) problems.push(`${file.folder} has no line in the layers block`);
    for (const { line, specifier } of file.imports) {
      if (!specifier.startsWith(".")) continue;
      const target = relative(source, resolve(dirname(file.path), specifier)).split("/")[0] as string;
      if (target !== file.folder && may && !may.has("*") && !may.has(target))
        problems.push(`${at(file, line)}: ${file.folder} may not import ${target}`);
    }
  }
  none(problems);
});

test("another folder is entered through its door", () => {
  const problems: string[] = [];
  for (const file of sources) {
    // main.ts sizes the thread pool before any door is opened.
    if (file.folder === "main.ts") continue;
    for (const { line, specifier } of file.imports) {
      if (!specifier.startsWith(".")) continue;
      const target = relative(source, resolve(dirname(file.path), specifier));
      const [folder] = target.split("/") as [string];
      if (folder === file.folder || folder === ".." || !target.includes("/")) continue;
      // A contract's suite is a door for tests: it imports the test runner, which no product code may.
      if (target.endsWith(".contract.ts") && file.path.endsWith(".test.ts")) continue;
      if (!target.endsWith("/index.ts")) problems.push(`${at(file, line)}: imports past the door: ${specifier}`);
    }
  }
  none(problems);
});

test(`no file is longer than ${linesMax} lines or has a name that says nothing`, () => {
  none(
    sources
      .filter((file) => file.text.split("\n").length > linesMax || bannedNames.test(relative(source, file.path)))
      .map((file) => relative(root, file.path)),
  );
});

test("only app/ reads the environment", () => {
  const problems = sources
    .filter((file) => file.folder !== "app" && !file.path.endsWith(".test.ts"))
    .filter((file) => file.text.includes("process.env"));
  none(problems.map((file) => relative(root, file.path)));
});

test("folders that are given a clock do not look at another", () => {
  const clocked = new Set(["scheduling", "engine", "hosting", "metrics", "inference"]);
  const problems: string[] = [];
  for (const file of sources) {
    if (!clocked.has(file.folder) || /\.(test|contract)\.ts$/.test(file.path)) continue;
    file.text.split("\n").forEach((text, i) => {
      if (/\b(Date\.now|setTimeout|setInterval)\s*\(/.test(text)) problems.push(at(file, i + 1));
    });
  }
  none(problems);
});

test("every dependency has its line in DEPENDENCIES.md", () => {
  const page = readFileSync(join(root, "DEPENDENCIES.md"), "utf8");
  const problems: string[] = [];
  for (const manifest of ["package.json", "server/package.json"]) {
    const parsed = JSON.parse(readFileSync(join(root, manifest), "utf8")) as Record<string, Record<string, string>>;
    for (const kind of ["dependencies", "devDependencies", "optionalDependencies"]) {
      for (const name of Object.keys(parsed[kind] ?? {})) if (!page.includes(`\`${name}\``)) problems.push(name);
    }
  }
  none(problems);
});

test("every source file is imported by another or is an entry", () => {
  const imported = new Set<string>();
  const everything = [
    ...sources,
    ...["conformance", "bench", "examples", "scripts"].flatMap((each) => files(join(root, each)).map(read)),
  ];
  for (const file of everything) {
    for (const { specifier } of file.imports) {
      if (specifier.startsWith(".")) imported.add(resolve(dirname(file.path), specifier));
    }
    for (const match of file.text.matchAll(/new URL\("([^"]+\.ts)", import\.meta\.url\)/g))
      imported.add(resolve(dirname(file.path), match[1] as string));
  }
  const entries = /(\.test\.ts|\/main\.ts)$/;
  none(
    sources
      .filter((file) => !entries.test(file.path) && !imported.has(file.path))
      .map((file) => relative(root, file.path)),
  );
});
