import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { after, test } from "node:test";
import { eventually } from "../core/eventually-fixture.ts";
import { systemClock } from "../core/index.ts";
import { adoptDetached, startDetached } from "./detached-process.ts";
import { readProcessStart, type ProcessIdentity } from "./process-identity.ts";

const root = mkdtempSync(join(tmpdir(), "gal-detached-"));
after(() => rmSync(root, { recursive: true, force: true }));

const env = { PATH: "/usr/bin:/bin" };

async function shell(script: string, lines: string[] = []) {
  const outputDirectory = await mkdtemp(join(root, "o"));
  const output = { outputDirectory, onLine: (line: string) => void lines.push(line), clock: systemClock };
  return {
    ...output,
    process: await startDetached({ command: "/bin/sh", args: ["-c", script], env, cwd: root, ...output }),
  };
}

/** Starts a detached shell from a program that is then killed. */
async function shellOfKilled(
  script: string,
): Promise<{ readonly identity: ProcessIdentity; readonly outputDirectory: string }> {
  const outputDirectory = await mkdtemp(join(root, "o"));
  const program = `
    import { startDetached } from ${JSON.stringify(fileURLToPath(new URL("detached-process.ts", import.meta.url)))};
    import { systemClock } from ${JSON.stringify(fileURLToPath(new URL("../core/index.ts", import.meta.url)))};
    const { pid, startTicks } = await startDetached({
      command: "/bin/sh", args: ["-c", ${JSON.stringify(script)}], env: ${JSON.stringify(env)}, cwd: "/",
      outputDirectory: ${JSON.stringify(outputDirectory)}, onLine: () => {}, clock: systemClock,
    });
    console.log(JSON.stringify({ pid, startTicks }));`;
  const starter = spawn(process.execPath, ["--input-type=module", "-e", program], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [line] = (await once(starter.stdout, "data")) as [Buffer];
  starter.kill("SIGKILL");
  await once(starter, "exit");
  return { identity: JSON.parse(line.toString()) as ProcessIdentity, outputDirectory };
}

test("the starting process receives the lines, the last lines and the exit status", async () => {
  const lines: string[] = [];
  const { process: child } = await shell("echo hello; echo worse >&2; exit 3", lines);
  assert.deepEqual(await child.ended, { exitCode: 3, signal: null });
  assert.deepEqual(lines.toSorted(), ["hello", "worse"]);
  assert.deepEqual(child.outputTail(), ["hello", "worse"]);
});

test("starting a command that does not exist rejects", async () => {
  const outputDirectory = await mkdtemp(join(root, "o"));
  const options = { args: [], env, cwd: root, outputDirectory, onLine: () => {}, clock: systemClock };
  await assert.rejects(startDetached({ command: "/nonexistent/thing", ...options }), { code: "ENOENT" });
});

test("stopping sends SIGKILL after SIGTERM was ignored, and ends the whole process group", async () => {
  const lines: string[] = [];
  const { process: child } = await shell("trap '' TERM; sleep 1000 & echo $!; while true; do wait; done", lines);
  await eventually(() => lines.length > 0);
  await child.stop(20);
  assert.deepEqual(await child.ended, { exitCode: null, signal: "SIGKILL" });
  await eventually(() => readProcessStart(Number(lines[0])) === null);
});

test("the process survives a kill of its starter, and the next process reads what it printed meanwhile", async () => {
  const go = join(root, "go");
  const { identity, outputDirectory } = await shellOfKilled(
    `until [ -e ${go} ]; do sleep 0.01; done; echo said; touch ${go}.said; exec sleep 1000`,
  );
  writeFileSync(go, "");
  await eventually(() => existsSync(`${go}.said`));
  const lines: string[] = [];
  const adopted = adoptDetached(identity, {
    outputDirectory,
    onLine: (line) => void lines.push(line),
    clock: systemClock,
  });
  assert.ok(adopted !== null);
  await eventually(() => lines.length > 0);
  assert.deepEqual(lines, ["said"]);
  await adopted.stop(0);
});

test("a process that fills its pipe waits for the next process, which reads all output", async () => {
  // The shell waits for this file, so that the program that starts it is killed before any output is written.
  const go = join(root, "print");
  const { identity, outputDirectory } = await shellOfKilled(
    `until [ -e ${go} ]; do sleep 0.01; done; i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done`,
  );
  writeFileSync(go, "");
  const lines: string[] = [];
  const adopted = adoptDetached(identity, {
    outputDirectory,
    onLine: (line) => void lines.push(line),
    clock: systemClock,
  });
  assert.ok(adopted !== null);
  assert.deepEqual(await adopted.ended, { exitCode: null, signal: null });
  assert.equal(lines.length, 20_000);
  assert.deepEqual([lines[0], lines.at(-1)], ["line 0", "line 19999"]);
});

test("an adopted process is stopped like any other, and an ended one is not adopted", async () => {
  const { identity, outputDirectory } = await shellOfKilled("trap 'exit 0' TERM; while true; do sleep 0.01; done");
  const output = { outputDirectory, onLine: () => {}, clock: systemClock };
  const adopted = adoptDetached(identity, output);
  assert.ok(adopted !== null);
  await adopted.stop(5000);
  assert.equal(readProcessStart(identity.pid), null);
  assert.equal(adoptDetached(identity, output), null);
});

test("a released process continues, and can be adopted again", async () => {
  const { process: child, outputDirectory } = await shell("exec sleep 1000");
  child.release();
  assert.notEqual(readProcessStart(child.pid), null);
  const adopted = adoptDetached(child, { outputDirectory, onLine: () => {}, clock: systemClock });
  await adopted?.stop(0);
  assert.equal(readProcessStart(child.pid), null);
});
