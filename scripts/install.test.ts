import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { constants } from "node:fs";
import { access, copyFile, cp, mkdir, mkdtemp, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { after, afterEach, before, test } from "node:test";

/** A lockfile with one package, which npm installs on no system. */
const lock = {
  name: "checkout",
  version: "1.0.0",
  lockfileVersion: 3,
  packages: { "": { name: "checkout" }, "node_modules/node": { version: "24.0.0", optional: true, os: ["none"] } },
};
let root: string;
let own: string;
const children: ChildProcess[] = [];
const forever = `process.stdout.write("ready"); setInterval(() => {}, 1000);`;
const koffi = join(
  import.meta.dirname,
  `../node_modules/@koromix/koffi-linux-${process.arch}/linux_${process.arch}/koffi.node`,
);

/** A checkout with the packages of an older package-lock.json, including a Node. */
before(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), "gal-install-")));
  await mkdir(join(root, "scripts"));
  for (const file of ["start.js", "running-programs.js"])
    await cp(join(import.meta.dirname, file), join(root, "scripts", file));
  await writeFile(join(root, "package.json"), `{"name":"checkout","version":"1.0.0","type":"module"}`);
  await writeFile(join(root, "package-lock.json"), JSON.stringify(lock));
  await writeFile(join(root, "program.js"), `process.stdout.write("the program runs\\n");`);
  await writeFile(join(root, "platform.js"), forever);
});
afterEach(async () => {
  for (const child of children.splice(0)) await stopped(child);
});
after(() => rm(root, { recursive: true }));

async function installOldPackages(): Promise<void> {
  own = join(root, "node_modules/node/bin/node");
  await mkdir(join(root, "node_modules/node/bin"), { recursive: true });
  await rm(join(root, "node_modules/.bin"), { recursive: true, force: true });
  await mkdir(join(root, "node_modules/.bin"));
  await copyFile(process.execPath, own, constants.COPYFILE_FICLONE);
  await symlink("../node/bin/node", join(root, "node_modules/.bin/node"));
  const packages = { "node_modules/node": { version: "23.0.0" } };
  await writeFile(join(root, "node_modules/.package-lock.json"), JSON.stringify({ packages }));
}

async function running(program: string, args: readonly string[], cwd = root): Promise<ChildProcess> {
  const child = spawn(program, args, { cwd, stdio: ["ignore", "pipe", "inherit"] });
  children.push(child);
  const ended = once(child, "exit").then(() => assert.fail(`${program} has ended`));
  await Promise.race([once(child.stdout, "data"), ended]);
  ended.catch(() => {});
  return child;
}

async function stopped(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  child.kill("SIGKILL");
  await exited;
}

async function start() {
  const child = spawn(process.execPath, [join(root, "scripts/start.js"), "program.js"], { cwd: root });
  const exited = once(child, "close") as Promise<[number]>;
  const [stdout, stderr, [status]] = await Promise.all([text(child.stdout), text(child.stderr), exited]);
  return { stdout, stderr, status };
}

async function isRefused(pid: number | undefined, command: string): Promise<void> {
  const expected =
    `Cannot install the packages that package-lock.json names: 1 running program(s) use ${root}/node_modules:\n` +
    `  ${pid}  ${command}\nStop them, for example with \`kill ${pid}\`, and run this command again.\n`;
  assert.deepEqual(await start(), { stdout: "", stderr: expected, status: 1 });
  await access(own);
}

test("packages are not installed while a program runs from them, and are installed when it has ended", async () => {
  await installOldPackages();
  const linked = join(root, "node_modules/.bin/node");
  for (const program of [own, linked]) {
    const platform = await running(program, ["platform.js", "up"]);
    await isRefused(platform.pid, `${program} platform.js up`);
    await stopped(platform);
  }
  const { stdout, stderr, status } = await start();
  assert.deepEqual([stdout, stderr, status], ["Installing packages (once) ...\nthe program runs\n", "", 0]);
  await assert.rejects(access(own), "npm ci has removed the old packages");
});

test("a program that another Node runs is found by the native libraries that it loaded from the packages", async () => {
  await installOldPackages();
  const library = join(root, "node_modules/library.node");
  await copyFile(koffi, library);
  const script = `process.dlopen({ exports: {} }, ${JSON.stringify(library)}); ${forever}`;
  await writeFile(join(root, "loads.cjs"), script);
  const platform = await running(process.execPath, [join(root, "loads.cjs")], tmpdir());
  await isRefused(platform.pid, `${process.execPath} ${root}/loads.cjs`);
});

test("a second installation does not start while one is running", async () => {
  await installOldPackages();
  const script = `process.title = "npm ci --ignore-scripts"; ${forever}`;
  const npm = await running(process.execPath, ["-e", script]);
  await isRefused(npm.pid, "npm ci --ignore-scripts");
});

test("packages that npm has installed from package-lock.json, as `npm ci` does, are not installed again beside a running program", async () => {
  await installOldPackages();
  await writeFile(join(root, "node_modules/.package-lock.json"), JSON.stringify(lock));
  await running(own, ["platform.js", "up"]);
  assert.deepEqual(await start(), { stdout: "the program runs\n", stderr: "", status: 0 });
});
