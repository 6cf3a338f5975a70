import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { filesBelow, isGenerated, moduleOf, packages, programs, root, type SourceFile } from "./source-tree.ts";

/**
 * `node scripts/sizes.ts` prints the size and the structure of the product: lines of each package, the longest files, the widest option
 * types, large folders, circles of imports between files, and imports of a package from one above it.
 */
const listed = 10;
/** A folder with at least this number of lines has a row in docs/architecture/large-folders.md. */
const largeFolderLines = 1500;
/** The packages in the order of their imports: each imports only earlier ones. */
const order = ["base", "server", "runtimes", "hosting", "aws", "tools", "galatea"];

const product = filesBelow(packages).filter((file) => file.isPublished && !isGenerated(file));
const linesOf = (text: string) => text.trimEnd().split("\n").length;
const isComment = (line: string) => /^\s*(\/\/|\/\*|\*)/.test(line);
const sum = (numbers: readonly number[]) => numbers.reduce((total, each) => total + each, 0);

function print(title: string, rows: readonly (readonly (string | number)[])[]): void {
  process.stdout.write(`\n## ${title}\n`);
  for (const row of rows) process.stdout.write(`| ${row.join(" | ")} |\n`);
  if (rows.length === 0) process.stdout.write("none\n");
}

function packageRows(): (string | number)[][] {
  const rows = order.map((name) => {
    const files = product.filter((file) => file.module.split("/")[0] === name);
    const tests = filesBelow(join(packages, name)).filter((file) => !file.isPublished);
    const comments = sum(files.map(({ text }) => text.split("\n").filter(isComment).length));
    return [
      name,
      files.length,
      sum(files.map(({ text }) => linesOf(text))),
      comments,
      sum(tests.map(({ text }) => linesOf(text))),
    ];
  });
  const totals = [1, 2, 3, 4].map((column) => sum(rows.map((row) => row[column] as number)));
  return [
    ["package", "files", "lines", "of these comments", "lines of tests and fixtures"],
    ["---", "---:", "---:", "---:", "---:"],
    ...rows,
    ["all", ...totals],
  ];
}

function largeFolders(): [string, number][] {
  const folders = Map.groupBy(product, ({ name }) => dirname(name));
  return [...folders]
    .map(([name, files]): [string, number] => [name, sum(files.map(({ text }) => linesOf(text)))])
    .filter(([, lines]) => lines >= largeFolderLines)
    .toSorted((one, other) => other[1] - one[1]);
}

function pythonLines(): number {
  const paths = programs().filter((path) => path.startsWith("packages/server/python/") && /(?<!_test)\.py$/.test(path));
  return sum(paths.map((path) => linesOf(readFileSync(join(root, path), "utf8"))));
}

function widestOptions(): [string, number][] {
  const found = product.flatMap(({ text }) =>
    [...text.matchAll(/^(?:export )?interface (\w*(?:Options|Dependencies|Parts))\b[^{]*\{\n([\s\S]*?)^\}/gm)].map(
      ([, name = "", body = ""]): [string, number] => [
        name,
        [...body.matchAll(/^ {2}(?:readonly )?\w+\??[:(]/gm)].length,
      ],
    ),
  );
  return found.toSorted((one, other) => other[1] - one[1]).slice(0, listed);
}

/** Returns groups of files that import each other, over any number of steps (Tarjan's strongly connected components). */
function circles(files: readonly SourceFile[]): string[][] {
  const byPath = new Map(files.map((file) => [file.path, file]));
  const indexes = new Map<string, number>();
  const lows = new Map<string, number>();
  const stack: string[] = [];
  const found: string[][] = [];
  const visit = (path: string): void => {
    indexes.set(path, indexes.size);
    lows.set(path, indexes.get(path) as number);
    stack.push(path);
    for (const { target } of byPath.get(path)?.imports ?? []) {
      if (target === null || !byPath.has(target) || target === path) continue;
      if (!indexes.has(target)) visit(target);
      if (stack.includes(target)) lows.set(path, Math.min(lows.get(path) as number, lows.get(target) as number));
    }
    if (lows.get(path) !== indexes.get(path)) return;
    const circle = stack.splice(stack.indexOf(path));
    if (circle.length > 1) found.push(circle.map((each) => relative(root, each)));
  };
  for (const { path } of files) if (!indexes.has(path)) visit(path);
  return found;
}

function upwardImports(): [string, string][] {
  const floor = (name: string) => order.indexOf(name.split("/")[0] ?? "");
  return product.flatMap((file) =>
    file.imports
      .filter(({ target }) => target !== null && floor(moduleOf(relative(root, target))) > floor(file.module))
      .map(({ line, specifier }): [string, string] => [`${file.name}:${line}`, specifier]),
  );
}

const unlisted = readdirSync(packages).filter((name) => !order.includes(name));
if (unlisted.length > 0) throw new Error(`packages without a place in the order: ${unlisted.join(", ")}`);
print("TypeScript of the product, without generated files", packageRows());
process.stdout.write(`\nPython of the product: ${pythonLines()} lines\n`);
print("Large folders", largeFolders());
const longest = product.map(({ name, text }): [string, number] => [name, linesOf(text)]);
print("Longest files", longest.toSorted((one, other) => other[1] - one[1]).slice(0, listed));
print("Widest option types", widestOptions());
print("Circles of imports", circles(product));
print("Imports of a package above", upwardImports());
