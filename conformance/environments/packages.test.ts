import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const main = fileURLToPath(new URL("main.ts", import.meta.url));
const set = new URL("javascript-sdk/", import.meta.url);

interface Location {
  readonly cache: string;
  /** The only directory of PATH. */
  readonly programs: string;
  /** A file with one line for each run of npm. */
  readonly runs: string;
}

async function place(t: TestContext): Promise<Location> {
  const directory = await mkdtemp(join(tmpdir(), "galatea-packages-"));
  t.after(() => rm(directory, { recursive: true, force: true }));
  const programs = join(directory, "programs");
  await mkdir(programs);
  return { cache: join(directory, "cache"), programs, runs: join(directory, "runs") };
}

/** Writes a fake npm that records its arguments and then runs the lines of shell. */
async function npm({ programs, runs }: Location, lines: string): Promise<void> {
  const path = join(programs, "npm");
  await writeFile(path, `#!/bin/sh\necho "$PWD: $*" >> ${runs}\n${lines}\n`);
  await chmod(path, 0o755);
}

async function ensured({ cache, programs }: Location): Promise<string> {
  const words = [main, "--cache", cache, "javascript-sdk"];
  const { stdout } = await promisify(execFile)(process.execPath, words, { env: { ...process.env, PATH: programs } });
  return stdout.trim().replace(/^javascript-sdk /, "");
}

const lines = async (path: string) => (await readFile(path, "utf8")).trimEnd().split("\n");

test("a set of npm packages is installed once, from its lockfile and without install scripts", async (t) => {
  const at = await place(t);
  await npm(at, "echo installed > installed");
  const folder = await ensured(at);
  assert.equal(await ensured(at), folder);
  const [run = "", ...others] = await lines(at.runs);
  assert.deepEqual(others, []);
  assert(run.startsWith(`${folder}: ci --ignore-scripts `), run);
  for (const name of ["package.json", "package-lock.json"])
    assert.equal(await readFile(join(folder, name), "utf8"), await readFile(new URL(name, set), "utf8"));
  assert.equal(await readFile(join(folder, "installed"), "utf8"), "installed\n");
});

test("the remains of a failed installation are removed before the next one, and the error has npm's output and advice", async (t) => {
  const at = await place(t);
  await npm(at, "echo half > half; echo 'the cable is out' >&2; exit 7");
  await assert.rejects(ensured(at), ({ stderr }: { stderr: string }) => {
    assert.match(stderr, /`npm config get registry`\) has to be reachable/);
    assert.match(stderr, /ended with 7:\nthe cable is out\n/);
    return true;
  });
  await npm(at, "echo whole > whole");
  const names = await readdir(await ensured(at));
  assert.deepEqual(names.toSorted(), ["complete.json", "package-lock.json", "package.json", "whole"]);
});

test("the error without npm on PATH says so", async (t) => {
  await assert.rejects(ensured(await place(t)), /npm, which comes with Node, is not on PATH/);
});

test("the lockfile has every wanted package in the wanted version, and no registry addresses", async () => {
  const { dependencies } = JSON.parse(await readFile(new URL("package.json", set), "utf8"));
  const { packages } = JSON.parse(await readFile(new URL("package-lock.json", set), "utf8"));
  const locked = Object.fromEntries(
    Object.keys(dependencies).map((name) => [name, packages[`node_modules/${name}`]?.version]),
  );
  assert.deepEqual(dependencies, locked);
  for (const [path, { integrity, resolved }] of Object.entries<Record<string, string>>(packages)) {
    if (path !== "") assert.match(integrity ?? "", /^sha512-/, path);
    assert.equal(resolved, undefined, path);
  }
});
