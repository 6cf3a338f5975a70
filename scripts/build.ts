import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, relative } from "node:path";
import { commands, serverVersion } from "../packages/galatea/src/app/index.ts";
import { manPage } from "./man-page.ts";
import { writeWheel } from "./wheel.ts";

/**
 * `npm run build`: writes the published package to dist/galatea and packs it for npm and for pip. Each source file becomes one JavaScript module;
 * generated files, Python programs, licenses and templates are copied. The package bundles the other packages of the workspace
 * (bundleDependencies), so that one file installs everything, and carries the ONNX Runtime library for each platform.
 */
interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly scripts?: object;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  /** Packages that an operator installs for one flag. All of them are optional. */
  readonly peerDependencies?: Readonly<Record<string, string>>;
  readonly peerDependenciesMeta?: object;
  readonly exports?: Readonly<Record<string, string>>;
}

const root = join(import.meta.dirname, "..");
const packages = join(root, "packages");
const dist = join(root, "dist");
const command = join(dist, "galatea");
const names = readdirSync(packages);

/** Returns where the package `name` lies in the published one. */
const publishedPath = (name: string) => (name === "galatea" ? command : join(command, "node_modules/@galatea", name));

const manifestOf = (name: string) => JSON.parse(readFileSync(join(packages, name, "package.json"), "utf8")) as Manifest;
const isOwn = (dependency: string) => dependency.startsWith("@galatea/");

compile();
for (const name of ["galatea", ...names.filter((each) => each !== "galatea")]) publish(name);
rmSync(join(dist, "packages"), { recursive: true });
copyOnnxRuntime();
writeManPage();
run("npm", ["pack", command, "--pack-destination", dist, "--silent"]);
writeWheel(command, dist);

function compile(): void {
  rmSync(dist, { recursive: true, force: true });
  run("tsc", ["-p", join(root, "tsconfig.build.json")]);
}

/** Ends this program with the exit code of a command that fails. */
function run(program: string, args: readonly string[]): void {
  const { status } = spawnSync(program, args, { stdio: "inherit" });
  if (status !== 0) process.exit(status ?? 1);
}

function publish(name: string): void {
  const from = join(packages, name);
  const to = publishedPath(name);
  mkdirSync(to, { recursive: true });
  renameSync(join(dist, "packages", name, "src"), join(to, "src"));
  for (const entry of readdirSync(join(from, "src"), { withFileTypes: true, recursive: true })) {
    if (!entry.isDirectory() || entry.name !== "gen") continue;
    const folder = join(entry.parentPath, entry.name);
    cpSync(folder, join(to, relative(from, folder)), { recursive: true });
  }
  const isPublished = (path: string) => !/(_test\.py|\.pyc|__pycache__|WIRE\.md)$/.test(path);
  for (const folder of ["bin", "python", "licenses", "templates"].filter((each) => readdirSync(from).includes(each)))
    cpSync(join(from, folder), join(to, folder), { recursive: true, filter: isPublished });
  writeFileSync(join(to, "package.json"), `${JSON.stringify(publishedManifest(name), null, 2)}\n`);
}

/**
 * Returns the manifest with compiled files in its exports. The manifest of the command bundles the other packages and
 * depends on their dependencies and on the pinned Node, so that any Node can install it. A bundled package has no
 * dependencies: `npm i -g` would treat them as bundled and leave their folders empty.
 */
function publishedManifest(name: string): object {
  const { devDependencies: _, optionalDependencies: __, scripts: ___, ...read } = manifestOf(name);
  const { peerDependencies: ____, peerDependenciesMeta: _____, exports = {}, dependencies = {}, ...manifest } = read;
  const entries = Object.entries(exports).filter(([key]) => !key.endsWith(".ts"));
  const compiled = Object.fromEntries(entries.map(([key, path]) => [key, path.replace(/\.ts$/, ".js")]));
  if (name !== "galatea") return { ...manifest, exports: compiled };
  const peers = ofAllPackages("peerDependencies");
  return {
    ...manifest,
    bin: { galatea: "bin/galatea" },
    man: "man/galatea.1",
    engines: { node: ">=18" },
    dependencies: ofAllPackages("dependencies"),
    optionalDependencies: { ...ofAllPackages("optionalDependencies"), ...pinnedNode() },
    peerDependencies: peers,
    peerDependenciesMeta: Object.fromEntries(Object.keys(peers).map((each) => [each, { optional: true }])),
    bundleDependencies: Object.keys(dependencies).filter(isOwn),
  };
}

/** Dependencies of the workspace's packages, by name. */
function ofAllPackages(kind: "dependencies" | "optionalDependencies" | "peerDependencies"): object {
  const needed = names.flatMap((each) => Object.entries(manifestOf(each)[kind] ?? {}));
  return Object.fromEntries(needed.toSorted(([one], [other]) => (one < other ? -1 : 1)));
}

function writeManPage(): void {
  mkdirSync(join(command, "man"));
  writeFileSync(join(command, "man/galatea.1"), manPage(commands, serverVersion));
}

/** The packages that contain Node, by name. */
function pinnedNode(): object {
  const { optionalDependencies = {} } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as Manifest;
  return Object.fromEntries(Object.entries(optionalDependencies).filter(([name]) => name.startsWith("node-")));
}

/** Copies the libraries to where `onnxRuntimeLibrary` looks. As a dependency, onnxruntime-node would bring those of all platforms and run its install script. */
function copyOnnxRuntime(): void {
  const library = "libonnxruntime.so.1";
  const { resolve } = createRequire(join(packages, "server/src/native/onnxruntime-library.ts"));
  const libraries = join(dirname(resolve("onnxruntime-node/package.json")), "bin/napi-v6");
  for (const platform of ["linux/x64", "linux/arm64"]) {
    const directory = join(publishedPath("server"), "src/native/onnxruntime", platform);
    mkdirSync(directory, { recursive: true });
    cpSync(join(libraries, platform, library), join(directory, library));
  }
}
