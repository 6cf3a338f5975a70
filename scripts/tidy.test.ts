import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { test } from "node:test";
import {
  exportsOf,
  filesBelow,
  isDoor,
  isGenerated,
  lineAt,
  manifest,
  moduleOf,
  packages,
  programs,
  reachedFrom,
  root,
  type SourceFile,
} from "./source-tree.ts";
import { cleanPackages, problemsOf, wordsOfProduct } from "./words.ts";

const linesMax = 500;
const bannedNames = /(^|[-/])(manager|helpers?|utils?|common|misc)([-./]|$)/;

const everything = filesBelow(packages);
const sources = everything.filter((file) => !isGenerated(file));
const at = (file: SourceFile, line: number) => `${file.name}:${line}`;
const none = (problems: readonly string[]) => assert.deepEqual(problems, []);
/** The module of the file that an import names; null outside the packages. */
const targetModule = (target: string | null) => (target === null ? "" : moduleOf(relative(root, target))) || null;

function layers(): Map<string, Set<string>> {
  const block = /```layers\n([\s\S]*?)```/.exec(readFileSync(join(root, "ARCHITECTURE.md"), "utf8"))?.[1];
  assert.ok(block, "ARCHITECTURE.md has a layers block");
  return new Map(
    block
      .trim()
      .split("\n")
      .map((line) => {
        const [name, allowed] = line.split(":") as [string, string];
        return [name.trim(), new Set(allowed.trim().split(/\s+/).filter(Boolean))];
      }),
  );
}

test("modules import only what the layers block allows, and each import that it allows is needed", () => {
  const allowed = layers();
  const unused = new Set([...allowed].flatMap(([name, may]) => [...may].map((each) => `${name}: ${each}`)));
  const problems: string[] = [];
  for (const file of sources.filter((each) => each.isPublished)) {
    const may = allowed.get(file.module);
    if (may === undefined) problems.push(`${file.module} has no line in the layers block`);
    for (const { line, target } of file.imports) {
      const imported = targetModule(target);
      if (imported === null || imported === file.module) continue;
      unused.delete(`${file.module}: ${imported}`);
      unused.delete(`${file.module}: *`);
      if (may && !may.has("*") && !may.has(imported))
        problems.push(`${at(file, line)}: ${file.module} may not import ${imported}`);
    }
  }
  none([...problems, ...[...unused].map((each) => `${each} is allowed and not needed`)]);
});

test("the lines of the layers block stand in an order in which each module imports only those above it", () => {
  const above = new Set<string>();
  const problems: string[] = [];
  for (const [name, may] of layers()) {
    for (const each of may)
      if (each !== "*" && !above.has(each)) problems.push(`${name} imports ${each}, which is not above it`);
    above.add(name);
  }
  none(problems);
});

test("a package imports the packages of its manifest, and its manifest names no other", () => {
  const problems: string[] = [];
  for (const name of readdirSync(packages)) {
    const needed = new Set<string>();
    for (const file of sources.filter((each) => each.isPublished && each.module.split("/")[0] === name))
      for (const { specifier } of file.imports) {
        const [, imported] = /^(@[^/]+\/[^/]+|[^./@][^/]*)/.exec(specifier) ?? [];
        if (imported !== undefined && !imported.startsWith("node:")) needed.add(imported);
      }
    // Imports of types alone may come from development dependencies.
    const { dependencies = {}, devDependencies = {} } = manifest(name);
    for (const each of needed)
      if (!(each in dependencies || each in devDependencies))
        problems.push(`packages/${name}/package.json lacks ${each}`);
    for (const each of Object.keys(dependencies))
      if (!needed.has(each)) problems.push(`packages/${name} does not import ${each}`);
  }
  none(problems);
});

test("another module is entered through its index", () => {
  const problems: string[] = [];
  for (const file of sources) {
    // main.ts sizes the thread pool before any other module is loaded.
    if (file.name === "packages/galatea/src/main.ts") continue;
    for (const { line, target, specifier } of file.imports) {
      const imported = targetModule(target);
      if (imported === null || imported === file.module) continue;
      // Generated files are modules of their own. Tests reach into their own package, and import contracts and fixtures of others.
      const isOwn = imported.split("/")[0] === file.module.split("/")[0];
      if (/\/gen\//.test(specifier) && isOwn) continue;
      if (!file.isPublished && (isOwn || /\.contract\.ts$|fixtures?\.ts$/.test(specifier))) continue;
      if (!isDoor({ path: target as string }))
        problems.push(`${at(file, line)}: imports past the index of ${imported}: ${specifier}`);
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

test("only the command's app/ reads the environment", () => {
  none(
    sources
      .filter((file) => file.module !== "galatea/app" && file.isPublished && file.text.includes("process.env"))
      .map((file) => file.name),
  );
});

test("only the records have SQL: every other module takes documents, metrics and objects through their interfaces", () => {
  const sql =
    /["']node:sqlite["']|\b(?:SELECT\s|INSERT\s+(?:OR\s+\w+\s+)?INTO\b|CREATE\s+(?:TABLE|INDEX)\b|DELETE\s+FROM\b|DROP\s+TABLE\b|PRAGMA\s)/g;
  // A lock on a directory is SQLite's lock on an empty database.
  const lock = "packages/base/src/processes/directory-lock.ts";
  none(
    sources
      .filter((file) => file.module !== "hosting/records" && file.name !== lock && file.isPublished)
      .flatMap((file) => [...file.text.matchAll(sql)].map((match) => at(file, lineAt(file.text, match.index)))),
  );
});

test("hosting reads no memory, processors, disks or addresses of the machine: the command passes them in", () => {
  // Modules that run on the instance's machine.
  const onNodes = /^hosting\/(model-cache|instances|process-host|container-host)$/;
  const machine =
    /\b(?:totalmem|freemem|cpus|loadavg|availableParallelism|availableMemory|constrainedMemory|networkInterfaces|statfs|statfsSync)\b|\/proc\/(?!self\/autogroup)|\/sys\/|\b127\.0\.0\.1\b|\blocalhost\b/g;
  none(
    sources
      .filter((file) => /^hosting(\/|$)/.test(file.module) && !onNodes.test(file.module) && file.isPublished)
      .flatMap((file) => [...file.text.matchAll(machine)].map((match) => at(file, lineAt(file.text, match.index)))),
  );
});

test("modules that are given a clock use no other", () => {
  const clocked =
    /^(server\/(scheduling|engine|inference)|base\/metrics|hosting\/(?!(objects|records|process-host)$).*)$/;
  const otherTime = /\b(Date\.now|setTimeout|setInterval|AbortSignal\.timeout)\s*\(/g;
  none(
    sources
      .filter((file) => clocked.test(file.module) && file.isPublished)
      .flatMap((file) => [...file.text.matchAll(otherTime)].map((match) => at(file, lineAt(file.text, match.index)))),
  );
});

test("every dependency has its line in DEPENDENCIES.md", () => {
  const page = readFileSync(join(root, "DEPENDENCIES.md"), "utf8");
  const problems: string[] = [];
  const environments = ["javascript-sdk", "postgres"].map((name) => `conformance/environments/${name}/package.json`);
  const sets = [...environments, "docs/package.json"];
  const manifests = readdirSync(packages).map((name) => `packages/${name}/package.json`);
  for (const path of ["package.json", ...manifests, ...sets]) {
    const parsed = JSON.parse(readFileSync(join(root, path), "utf8")) as Record<string, Record<string, string>>;
    for (const kind of ["dependencies", "devDependencies", "optionalDependencies"]) {
      for (const name of Object.keys(parsed[kind] ?? {}))
        if (!name.startsWith("@galatea/") && !page.includes(`\`${name}\``)) problems.push(name);
    }
  }
  none(problems);
});

test("every published file is reached from main.ts or an example, not only from its own test or index", () => {
  const examples = filesBelow(join(root, "examples"));
  // The agent of a node without its platform: so far the command runs all instances in its own process.
  const remoteAgent = join(packages, "hosting/src/instance-agent-http/index.ts");
  const entries = [join(packages, "galatea/src/main.ts"), remoteAgent, ...examples.map(({ path }) => path)];
  const reached = entries.map((entry) => reachedFrom(entry, [...everything, ...examples]));
  none(
    sources.filter((file) => file.isPublished && !reached.some((each) => each.has(file.path))).map(({ name }) => name),
  );
});

test("an index exports no value that no other module imports", () => {
  const users = ["conformance", "bench", "examples", "scripts"].flatMap((each) => filesBelow(join(root, each)));
  const acquired = new Set<string>();
  for (const { target, names } of [...everything, ...users].flatMap((file) => file.imports))
    for (const name of names ?? ["*"]) acquired.add(`${target} ${name}`);
  const problems: string[] = [];
  for (const entry of sources.filter(isDoor)) {
    if (acquired.has(`${entry.path} *`)) continue;
    for (const [, clause] of entry.text.matchAll(/^export (\{[^}]*\}) from/gm)) {
      const values = (clause as string)
        .slice(1, -1)
        .split(",")
        .map((each) => each.trim());
      for (const each of values.filter((one) => /^\w+( as \w+)?$/.test(one))) {
        const name = each.replace(/^\w+ as /, "");
        if (!acquired.has(`${entry.path} ${name}`)) problems.push(`${entry.name}: ${name}`);
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
  const locations = new Map<string, string[]>();
  for (const file of sources) {
    if (isDoor(file) || !file.isPublished) continue;
    for (const { name, line } of exportsOf(file)) locations.set(name, [...(locations.get(name) ?? []), at(file, line)]);
  }
  none([...locations].flatMap(([name, found]) => (found.length === 1 ? [] : [`${name}: ${found.join(", ")}`])));
});

test("comments begin with their subject or verb, and exported names are the field's, in the packages that are clean so far", () => {
  const prefixes = cleanPackages.map((name) => `packages/${name}/`);
  none(
    wordsOfProduct()
      .filter(({ path }) => prefixes.some((prefix) => path.startsWith(prefix)))
      .flatMap(problemsOf),
  );
});
