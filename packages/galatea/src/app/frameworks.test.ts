import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { frameworkByName, frameworkLocation } from "@galatea/server/backends/python";
import { dataDirectories, machineFrameworks } from "../data-directory/index.ts";

const main = fileURLToPath(new URL("../main.ts", import.meta.url));
let root: string;

before(async () => {
  root = await mkdtemp(join(tmpdir(), "gal-frameworks-"));
});
after(() => rm(root, { recursive: true, force: true }));

/** Creates the files that `galatea model add` creates and other commands read. */
async function made(directory: string): Promise<string> {
  const location = await frameworkLocation(directory, frameworkByName("sklearn")!);
  await mkdir(location.directory, { recursive: true });
  await writeFile(join(location.directory, "ready"), "");
  return location.directory;
}

function model(...args: readonly string[]): string {
  const env = { PATH: process.env.PATH, HOME: join(root, "home"), GALATEA_FRAMEWORKS: join(root, "machine") };
  const done = spawnSync(process.execPath, [main, "model", ...args], { encoding: "utf8", env });
  assert.equal(done.status, 0, done.stderr);
  return done.stdout;
}

test("frameworks installed for the machine are found from every data directory, and no data directory gets its own copy", async () => {
  const directory = await made(join(root, "machine"));
  for (const data of ["one", "other"]) {
    assert.equal(model("add", "sklearn", `--data=${join(root, data)}`), `sklearn is set up in ${directory}\n`);
    assert.match(model("list", `--data=${join(root, data)}`), new RegExp(`^sklearn: .*; ${directory}$`, "m"));
  }
  assert.equal(model("add", "sklearn"), `sklearn is set up in ${directory}\n`);
  assert.equal(model("remove", "sklearn"), "sklearn is removed\n");
  assert.match(model("list"), /^sklearn: .*; not set up: galatea model add sklearn$/m);
});

test("frameworks in a data directory take precedence over those of the machine", async () => {
  await made(join(root, "machine"));
  const own = await made(join(root, "own/frameworks"));
  assert.match(model("list", `--data=${join(root, "own")}`), new RegExp(`^sklearn: .*; ${own}$`, "m"));
});

test("the machine's frameworks are installed under root's, the user's or GALATEA_FRAMEWORKS' directory", async () => {
  const system = "/var/lib/galatea/frameworks";
  const ofUser = process.getuid?.() === 0 ? system : "/shared/galatea/frameworks";
  const env = { XDG_DATA_HOME: "/shared" };
  assert.equal(machineFrameworks(env), ofUser);
  assert.deepEqual(dataDirectories("/data", env).frameworks, [...new Set(["/data/frameworks", ofUser, system])]);
  const named = { ...env, GALATEA_FRAMEWORKS: "/named", GALATEA_DATA: "/data" };
  assert.deepEqual(dataDirectories(null, named).frameworks, ["/data/frameworks", "/named"]);
  assert.equal(machineFrameworks(named), "/named");
});
