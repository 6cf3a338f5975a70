import { createHash } from "node:crypto";
import { accessSync, constants, readFileSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { createdDirectory } from "../conformance/environments/created-directory.ts";
import { runCommand, type Installation } from "../conformance/environments/run-command.ts";
import { keepNewest } from "./keep-newest.ts";

const sources = join(import.meta.dirname, "programs");

/** Programs that must be installed on the machine, with the Debian package of each. Go is not among them. */
const machinePrograms: Readonly<Record<string, string>> = {
  containerd: "containerd",
  runc: "runc",
  ip: "iproute2",
  iptables: "iptables",
  conntrack: "conntrack",
  openssl: "openssl",
  mmdebstrap: "mmdebstrap",
  unshare: "util-linux",
  "/usr/lib/cni/bridge": "containernetworking-plugins",
  go: "golang (1.26 or newer)",
};

/** Returns the Debian packages of missing programs, sorted. Looks for programs in the folders of `path` (as in PATH). */
export function missingPackages(path: string): readonly string[] {
  const folders = [...path.split(delimiter), "/usr/sbin", "/sbin"];
  const isThere = (program: string) =>
    (program.startsWith("/") ? [program] : folders.map((folder) => join(folder, program))).some(isExecutable);
  return Object.entries(machinePrograms)
    .flatMap(([program, name]) => (isThere(program) ? [] : [name]))
    .toSorted();
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Returns the folder with the programs of Kubernetes, etcd, helm and pause. Builds them below `cacheDirectory` if their sources changed. */
export async function ensurePrograms(cacheDirectory: string, making: Installation): Promise<string> {
  const texts = ["build.sh", "kubernetes.go", "pause.go"].map((name) => readFileSync(join(sources, name)));
  const key = createHash("sha256").update(Buffer.concat(texts)).digest("hex").slice(0, 12);
  const parent = join(cacheDirectory, "cluster");
  const name = `programs-${key}`;
  const folder = join(parent, name);
  await createdDirectory(folder, making, async () => {
    await mkdir(folder);
    await runCommand([join(sources, "build.sh"), folder], making);
    return { key };
  });
  await keepNewest(parent, "programs-", name);
  return folder;
}
