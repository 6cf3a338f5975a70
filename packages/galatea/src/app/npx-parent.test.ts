import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { isShellOfNpx } from "./npx-parent.ts";

const root = fileURLToPath(new URL("../../../../", import.meta.url));
const main = fileURLToPath(new URL("../main.ts", import.meta.url));

/** Starts a platform as a descendant of another process. The output ends when the last descendant has ended. */
async function startPlatform(t: TestContext, command: string, args: readonly string[]) {
  const directory = await mkdtemp(join(tmpdir(), "npx-parent-"));
  const data = join(directory, "data");
  const child: ChildProcess = spawn(
    command,
    args.map((word) => word.replace("DATA", data)),
    {
      cwd: root,
      // A killed platform does not remove its temporary files, so it gets a directory that the test removes.
      env: { ...process.env, TMPDIR: directory },
      stdio: ["ignore", "pipe", "pipe"],
      detached: true,
    },
  );
  let output = "";
  const ended = once(child.stdout!, "close");
  const url = Promise.withResolvers<string>();
  child.stderr!.on("data", (chunk: Buffer) => (output += String(chunk)));
  child.stdout!.on("data", (chunk: Buffer) => {
    output += String(chunk);
    const found = /Galatea is up at (http\S+)/.exec(output)?.[1];
    if (found !== undefined) url.resolve(found);
  });
  void ended.then(() => url.reject(new Error(`it ended: ${output}`)));
  t.after(async () => {
    try {
      process.kill(-child.pid!, "SIGKILL");
    } catch (error) {
      assert.equal((error as NodeJS.ErrnoException).code, "ESRCH");
    }
    await ended;
    await rm(directory, { recursive: true, force: true });
  });
  return { child, ended, url: await url.promise };
}

test("a platform shuts down cleanly when its npx process is terminated", async (t) => {
  const platform = await startPlatform(t, "npx", ["--no", "galatea", "up", "--port=0", "--data=DATA"]);
  platform.child.kill("SIGTERM");
  await platform.ended;
});

test("a platform shuts down when its npx process is killed", async (t) => {
  const platform = await startPlatform(t, "npx", ["--no", "galatea", "up", "--port=0", "--data=DATA"]);
  platform.child.kill("SIGKILL");
  await platform.ended;
});

test("a platform shuts down when its npx process is killed during the start", async (t) => {
  const directory = await mkdtemp(join(tmpdir(), "npx-parent-"));
  // npx is killed by its own shell before the program starts.
  const script = `kill -KILL $PPID; '${process.execPath}' '${main}' up --port=0 --data='${directory}/data'`;
  const child = spawn("npx", ["--no", "-c", script], {
    cwd: root,
    stdio: ["ignore", "pipe", "ignore"],
    detached: true,
  });
  t.after(async () => {
    // The group is still running only if the test has failed.
    if (!child.stdout.closed) process.kill(-child.pid!, "SIGKILL");
    await rm(directory, { recursive: true, force: true });
  });
  let output = "";
  child.stdout.on("data", (chunk: Buffer) => (output += String(chunk)));
  await once(child.stdout, "close");
  assert.equal(output, "");
});

test("a platform that a shell started in the background keeps running when the shell has ended", async (t) => {
  const words = `'${process.execPath}' '${main}' up --port=0 --data=DATA`;
  const platform = await startPlatform(t, "env", ["npm_command=exec", "sh", "-c", `${words} & wait $!`]);
  const removed = once(platform.child, "exit");
  platform.child.kill("SIGKILL");
  await removed;
  assert.ok((await fetch(`${platform.url}/health`)).status > 0);
});

test("npx and its shell are recognized by their command lines and npm's variables", () => {
  const at = (...command: string[]) => ({ pid: 2, parentPid: 1, command });
  const ofNpx = { npm_lifecycle_event: "npx", npm_lifecycle_script: "'galatea'" };
  const shell = at("sh", "-c", "'galatea' up");
  assert.ok(isShellOfNpx(shell, ofNpx));
  assert.ok(isShellOfNpx(at("npm exec galatea up"), {}));
  assert.ok(isShellOfNpx(at("node", "/usr/lib/node_modules/npm/bin/npx-cli.js", "galatea"), {}));
  assert.equal(isShellOfNpx(shell, { ...ofNpx, npm_lifecycle_event: "serve" }), false);
  assert.equal(isShellOfNpx(at("sh", "-c", "sleep 1; galatea up"), ofNpx), false);
  assert.equal(isShellOfNpx(at("bash"), ofNpx), false);
  assert.equal(isShellOfNpx(shell, {}), false);
});
