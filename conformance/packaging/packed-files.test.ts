/** Installs the packages that `npm run build` creates into empty folders, as root and as another user, and runs them there. */
import assert from "node:assert/strict";
import { chmod, mkdtemp, readdir, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { InstalledGalatea, root, User } from "./installed-galatea.ts";

const installedBytesMax = 120_000_000;
const dist = join(root, "dist");

let directory: string;
let own: User;
let unprivileged: User;
let tarball: string;
let wheel: string;
/** A folder in which `npm i` installed the packed file. */
let packages: string;

before(async () => {
  directory = await mkdtemp(join(tmpdir(), "galatea-packed-"));
  await chmod(directory, 0o755);
  own = await User.current(directory);
  unprivileged = await User.unprivileged(directory);
  const programs = `PATH=${join(root, "node_modules/.bin")}:${own.environment["PATH"]}`;
  await own.run(root, ["env", programs, process.execPath, join(root, "scripts/build.ts")]);
  const packed = async (name: RegExp) => {
    const found = (await readdir(dist)).filter((each) => name.test(each));
    assert.equal(found.length, 1, `${found.join(" ")} of ${String(name)}`);
    return join(dist, found[0]!);
  };
  tarball = await packed(/^galatea-.*\.tgz$/);
  wheel = await packed(/^galatea-.*\.whl$/);
  packages = await own.makeFolder("packages");
  await own.run(packages, ["npm", "i", tarball]);
});

after(() => rm(directory, { recursive: true, force: true }));

test("plain `npm i` takes less than 120 MB in addition to Node, and runs no install script", async () => {
  const lock = JSON.parse(await readFile(join(packages, "node_modules/.package-lock.json"), "utf8")) as {
    readonly packages: Readonly<Record<string, { readonly hasInstallScript?: boolean }>>;
  };
  const scripted = Object.entries(lock.packages).filter(([, each]) => each.hasInstallScript === true);
  assert.deepEqual(scripted, []);
  const files = await readdir(join(packages, "node_modules"), { recursive: true, withFileTypes: true });
  const counted = files.filter((each) => each.isFile() && !each.parentPath.includes("/node-linux-"));
  const sizes = await Promise.all(counted.map(async (each) => (await stat(join(each.parentPath, each.name))).size));
  const installedBytes = sizes.reduce((sum, size) => sum + size, 0);
  assert.ok(installedBytes < installedBytesMax, `${installedBytes} bytes installed`);
});

test("--pods without the client of Kubernetes, which plain `npm i` does not install, says what to install", async () => {
  const data = await own.makeFolder("data");
  const command = `node_modules/.bin/galatea up --pods=/absent --port=0 --data=${data} 2>&1; test $? = 1`;
  assert.match(
    await own.run(packages, ["sh", "-c", command]),
    /^galatea up: --pods needs the package @kubernetes\/client-node: install it where galatea is installed, with `npm install @kubernetes\/client-node@2` \(or `npm install --global @kubernetes\/client-node@2`\)$/m,
  );
});

test("the packed file carries the ONNX Runtime library for both platforms, with its license", async () => {
  const server = join(packages, "node_modules/galatea/node_modules/@galatea/server");
  // Bytes 18 and 19 of an ELF file are its machine: 62 is x86-64, 183 is AArch64.
  for (const [arch, machine] of [
    ["x64", 62],
    ["arm64", 183],
  ] as const) {
    const library = join(server, "src/native/onnxruntime/linux", arch, "libonnxruntime.so.1");
    assert.equal((await readFile(library)).readUInt16LE(18), machine);
  }
  assert.match(await readFile(join(server, "licenses/onnxruntime.txt"), "utf8"), /MIT License/);
});

test("a package installed by `npm i` serves models and hosts an endpoint", async () => {
  const galatea = new InstalledGalatea(join(packages, "node_modules/.bin/galatea"), own);
  await galatea.checkServe();
  await galatea.checkUp();
});

test("a package installed by `npm i -g --ignore-scripts` serves and hosts for a user without write access to it", async () => {
  const prefix = await own.makeFolder("prefix");
  await own.run(own.home, ["npm", "i", "-g", "--ignore-scripts", "--prefix", prefix, tarball]);
  await own.run(own.home, ["chmod", "-R", "a-w", prefix]);
  const galatea = new InstalledGalatea(join(prefix, "bin/galatea"), unprivileged);
  await galatea.checkServe();
  await galatea.checkUp();
  await own.run(own.home, ["chmod", "-R", "u+w", prefix]);
});

for (const which of ["root", "another user"])
  test(`a wheel installed by pip serves and hosts for ${which}`, async () => {
    const user = which === "root" ? own : unprivileged;
    const environment = await user.makeFolder("environment");
    await user.run(user.home, ["python3", "-m", "venv", environment]);
    await user.run(user.home, [join(environment, "bin/pip"), "install", "--no-index", wheel]);
    const galatea = new InstalledGalatea(join(environment, "bin/galatea"), user);
    await galatea.checkServe();
    await galatea.checkUp();
  });

test("the packed file has a manual page, generated from the flags", async () => {
  const page = await readFile(join(packages, "node_modules/galatea/man/galatea.1"), "utf8");
  assert.match(page, /^\.TH GALATEA 1 /);
  assert.match(page, /\n\.SS serve\n(?:.*\n)*?\.TP\n\\fB\\-\\-model\\-repository\\fR=\\fITEXT\\fR\n/);
});

test("a user other than root installs the packed file with `npm i` and starts it with npx", async () => {
  const folder = await unprivileged.makeFolder("packages");
  await unprivileged.run(folder, ["npm", "i", tarball]);
  assert.match(await unprivileged.run(folder, ["npx", "galatea", "--version"]), /^galatea \d/);
});
