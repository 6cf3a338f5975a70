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

/** Creates the files of `galatea model add` that are read later. */
async function made(directory: string): Promise<string> {
  const place = await frameworkLocation(directory, frameworkByName("sklearn")!);
  await mkdir(place.directory, { recursive: true });
  await writeFile(join(place.directory, "ready"), "");
  return place.directory;
}

function model(...args: readonly string[]): string {
  const env = { PATH: process.env.PATH, HOME: join(root, "home"), GALATEA_FRAMEWORKS: join(root, "machine") };
  const done = spawnSync(process.execPath, [main, "model", ...args], { encoding: "utf8", env });
  assert.equal(done.status, 0, done.stderr);
  return done.stdout;
}

test("a framework of the machine is found from every data directory, and none is made below another", async () => {
  const directory = await made(join(root, "machine"));
  for (const data of ["one", "other"]) {
    assert.equal(model("add", "sklearn", `--data=${join(root, data)}`), `sklearn is set up in ${directory}\n`);
    assert.match(model("list", `--data=${join(root, data)}`), new RegExp(`^sklearn: .*; ${directory}$`, "m"));
  }
  assert.equal(model("add", "sklearn"), `sklearn is set up in ${directory}\n`);
  assert.equal(model("remove", "sklearn"), "sklearn is removed\n");
  assert.match(model("list"), /^sklearn: .*; not set up: galatea model add sklearn$/m);
});

test("a data directory's own frameworks come before the machine's", async () => {
  await made(join(root, "machine"));
  const own = await made(join(root, "own/frameworks"));
  assert.match(model("list", `--data=${join(root, "own")}`), new RegExp(`^sklearn: .*; ${own}$`, "m"));
});

test("the machine's frameworks are root's for all users, another user's own, or where GALATEA_FRAMEWORKS says", async () => {
  const system = "/var/lib/galatea/frameworks";
  const ofUser = process.getuid?.() === 0 ? system : "/shared/galatea/frameworks";
  const env = { XDG_DATA_HOME: "/shared" };
  assert.equal(machineFrameworks(env), ofUser);
  assert.deepEqual(dataDirectories("/data", env).frameworks, [...new Set(["/data/frameworks", ofUser, system])]);
  const named = { ...env, GALATEA_FRAMEWORKS: "/named", GALATEA_DATA: "/data" };
  assert.deepEqual(dataDirectories(null, named).frameworks, ["/data/frameworks", "/named"]);
  assert.equal(machineFrameworks(named), "/named");
});
