import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, matchesGlob, relative, resolve } from "node:path";

export const root = resolve(import.meta.dirname, "..");
/** The folder of the packages; `packages/<name>/src` has the sources of one. */
export const packages = join(root, "packages");

/** Directory for compiled code of test processes (`NODE_COMPILE_CACHE`); it saves a third of a test file's processor time. */
export const compileCache = join(root, "node_modules/.cache/compiled");

/** One `import`, `export ... from`, dynamic `import()` or `new URL("x.ts", import.meta.url)`. */
export interface Import {
  readonly line: number;
  readonly specifier: string;
  /** The file that the specifier names, relative or in a package of the workspace; null for other packages. */
  readonly target: string | null;
  /** The imported names, as the target exports them; null for all of them. */
  readonly names: readonly string[] | null;
}

export interface SourceFile {
  readonly path: string;
  /** Path relative to the repository's root, as problems report it. */
  readonly name: string;
  /** The module: its package and the first folder of its source (`server/tensor`), the package alone for a file beside these; `<package>/test` for its tests of several modules. Empty outside the packages. */
  readonly module: string;
  readonly text: string;
  readonly imports: readonly Import[];
  readonly isTest: boolean;
  /** True if the published package contains the file; test fixtures and contracts are excluded. */
  readonly isPublished: boolean;
}

const unpublished = (JSON.parse(readFileSync(join(root, "tsconfig.build.json"), "utf8")) as { exclude: string[] })
  .exclude;

export function filesBelow(directory: string): SourceFile[] {
  return readdirSync(directory, { withFileTypes: true, recursive: true })
    .filter((each) => each.isFile() && each.name.endsWith(".ts"))
    .map((each) => join(each.parentPath, each.name))
    .filter((path) => !/\/(dist|node_modules)\//.test(path))
    .map(read);
}

/** Programs of any language below the repository's root, by their relative paths. Generated programs are excluded. */
export function programs(): string[] {
  return readdirSync(root, { withFileTypes: true })
    .filter((each) => each.isDirectory() && !each.name.startsWith("."))
    .flatMap(({ name }) =>
      name === "node_modules"
        ? []
        : readdirSync(join(root, name), { recursive: true, encoding: "utf8" }).map((path) => join(name, path)),
    )
    .filter((path) => /\.(ts|js|py|sh)$/.test(path) && !/\/(dist|gen|node_modules)\//.test(path));
}

/** Generated files, which the checks skip. */
export const isGenerated = (file: SourceFile) => file.path.includes("/gen/");

export const isDoor = (file: Pick<SourceFile, "path">) => file.path.endsWith("/index.ts");

/** The module of a file by its path from the repository's root. */
export function moduleOf(name: string): string {
  const [, owner, kind, folder] = /^packages\/(\w+)\/(src|test)\/(?:([^/]+)\/)?/.exec(name) ?? [];
  if (owner === undefined) return "";
  if (kind === "test") return `${owner}/test`;
  return folder === undefined ? owner : `${owner}/${folder}`;
}

/** Returns the file that `@galatea/<package>/<path>` names by the exports of that package's manifest; null for other packages. */
function inWorkspace(specifier: string): string | null {
  const [, name, path] = /^@galatea\/(\w+)(?:\/(.+))?$/.exec(specifier) ?? [];
  if (name === undefined) return null;
  if (path === undefined) return join(packages, name, manifest(name).exports["."] ?? "");
  return join(packages, name, "src", path.endsWith(".ts") ? path : `${path}/index.ts`);
}

/** The manifest of a package of the workspace. */
export function manifest(name: string): {
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
  readonly exports: Readonly<Record<string, string>>;
} {
  return JSON.parse(readFileSync(join(packages, name, "package.json"), "utf8"));
}

export function lineAt(text: string, index: number): number {
  return text.slice(0, index).split("\n").length;
}

function read(path: string): SourceFile {
  const text = readFileSync(path, "utf8");
  const name = relative(root, path);
  return {
    path,
    name,
    module: moduleOf(name),
    text,
    imports: importsOf(path, text),
    isTest: path.endsWith(".test.ts"),
    isPublished: /^packages\/\w+\/src\//.test(name) && !unpublished.some((glob) => matchesGlob(name, glob)),
  };
}

const statement = /(?:^|\n)(?:import|export)\s+(?:type\s+)?(?:(\{[^}]*\}|\*(?: as \w+)?|\w+)\s+from\s+)"([^"]+)"/g;
const others = /\bimport\s*\(?\s*"([^"]+)"|new URL\("([^"]+\.ts)", import\.meta\.url\)/g;

function importsOf(path: string, text: string): Import[] {
  const made = (index: number, specifier: string, names: readonly string[] | null): Import => ({
    line: lineAt(text, index),
    specifier,
    target: specifier.startsWith(".") ? resolve(dirname(path), specifier) : inWorkspace(specifier),
    names,
  });
  return [
    ...[...text.matchAll(statement)].map((match) => {
      const [, clause, specifier] = match as unknown as [string, string, string];
      return made(match.index + 1, specifier, clause.startsWith("{") ? namesOf(clause) : null);
    }),
    ...[...text.matchAll(others)].map((match) => {
      const specifier = (match[1] ?? match[2]) as string;
      return made(
        match.index,
        match[2] === undefined || specifier.startsWith(".") ? specifier : `./${specifier}`,
        null,
      );
    }),
  ];
}

function namesOf(clause: string): string[] {
  return clause
    .slice(1, -1)
    .replaceAll(/\/\/.*|\/\*[\s\S]*?\*\//g, "")
    .split(",")
    .map((each) => /^\s*(?:type\s+)?(\w+)/.exec(each)?.[1] ?? "")
    .filter((each) => each !== "");
}

const declaration = /^export (?:async |abstract |declare )*(?:function\*?|const|let|class|interface|type|enum) (\w+)/gm;

/** Returns the exported declarations of a file with their lines, without re-exports. */
export function exportsOf(file: SourceFile): { readonly name: string; readonly line: number }[] {
  return [...file.text.matchAll(declaration)].map((match) => ({
    name: match[1] as string,
    line: lineAt(file.text, match.index),
  }));
}

/**
 * Returns the files that running `entry` may load. An index leads only to the names that are imported from it, so that
 * a file is not in use just because the index of its folder exports it.
 */
export function reachedFrom(entry: string, files: readonly SourceFile[]): ReadonlySet<string> {
  const byPath = new Map(files.map((file) => [file.path, file]));
  const reached = new Set<string>();
  const acquired = new Set<string>();
  const visit = (path: string, names: readonly string[] | null): void => {
    const file = byPath.get(path);
    if (file === undefined) return;
    const isNew = !reached.has(path);
    reached.add(path);
    if (!isDoor(file)) {
      if (isNew) for (const each of file.imports) if (each.target !== null) visit(each.target, each.names);
      return;
    }
    for (const each of file.imports) {
      if (each.target === null) continue;
      const desired =
        names === null || each.names === null ? each.names : each.names.filter((one) => names.includes(one));
      for (const name of desired ?? ["*"]) {
        const key = `${path} ${each.target} ${name}`;
        if (acquired.has(key)) continue;
        acquired.add(key);
        visit(each.target, desired === null ? names : [name]);
      }
    }
  };
  visit(entry, null);
  return reached;
}
