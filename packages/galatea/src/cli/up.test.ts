import assert from "node:assert/strict";
import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { constants, existsSync } from "node:fs";
import { type FileHandle, mkdir, mkdtemp, open, rm, writeFile } from "node:fs/promises";
import { type IncomingMessage, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { eventually } from "@galatea/base/core/eventually-fixture.ts";

const main = fileURLToPath(new URL("../main.ts", import.meta.url));
let root: string;

before(async () => {
  root = await mkdtemp(join(tmpdir(), "gal-up-"));
});
after(() => rm(root, { recursive: true, force: true }));

interface Started {
  readonly child: ChildProcess;
  /** Resolves with the first match in the output so far. */
  seen(pattern: RegExp): Promise<RegExpExecArray>;
  readonly ended: Promise<{ code: number | null; signal: string | null }>;
}

function up(data: string): Started {
  const child = spawn(process.execPath, [main, "up", "--open", "--port=0", `--data=${data}`], {
    // A killed platform does not remove its temporary files, so it gets a directory that the tests remove.
    env: { ...process.env, TMPDIR: root },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let text = "";
  const looks = new Set<() => void>();
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (chunk: Buffer) => {
      text += String(chunk);
      for (const look of looks) look();
    });
  const ended = new Promise<{ code: number | null; signal: string | null }>((resolve) =>
    child.once("close", (code, signal) => resolve({ code, signal })),
  );
  const seen = (pattern: RegExp) =>
    new Promise<RegExpExecArray>((resolve, reject) => {
      const look = () => {
        const found = pattern.exec(text);
        if (found !== null) resolve(found);
      };
      looks.add(look);
      look();
      void ended.then(() => reject(new Error(`it ended without ${String(pattern)}: ${text}`)));
    });
  return { child, seen, ended };
}

/**
 * Resolves with a writer of a named pipe once a reader has opened the pipe. The reader then blocks until bytes arrive.
 */
async function writerOf(pipe: string): Promise<FileHandle> {
  let writer: FileHandle | undefined;
  await eventually(async () => {
    // Opening fails while the pipe has no reader.
    writer = await open(pipe, constants.O_WRONLY | constants.O_NONBLOCK).catch(() => undefined);
    return writer !== undefined;
  });
  return writer!;
}

test("a signal ends a platform that is still starting", async () => {
  for (const name of ["SIGTERM", "SIGINT"] as const) {
    const data = join(root, `stuck-${name}`);
    await mkdir(join(data, "clients"), { recursive: true });
    // The platform opens the pipe and waits for bytes for ever. Not even `process.exit` ends the thread that waits.
    const pipe = join(data, "clients/certificate.json");
    assert.equal(spawnSync("mkfifo", [pipe]).status, 0);
    const platform = up(data);
    await using _writer = await writerOf(pipe);
    platform.child.kill(name);
    await platform.seen(new RegExp(`stopping: ${name}, before the platform was open`));
    assert.deepEqual(await platform.ended, { code: null, signal: name });
  }
});

test("one stop signal, forwarded any number of times at once, waits for requests in flight; a later one does not", async () => {
  const platform = up(join(root, "held"));
  const [, url = ""] = await platform.seen(/at (http:\S+)/);
  assert.equal((await fetch(`${url}/bucket`, { method: "PUT" })).status, 200);
  const headers = { "content-length": 8, expect: "100-continue" };
  const begin = async (key: string) => {
    const upload = request(`${url}/bucket/${key}`, { method: "PUT", headers });
    // The server sends 100 Continue once it has read the request's head.
    await once(upload, "continue");
    upload.write("half");
    return upload;
  };
  const ends = await begin("ends");
  const held = await begin("held");
  const cut = new Promise((resolve) => held.once("error", resolve));
  for (let time = 0; time < 3; time++) platform.child.kill(time === 1 ? "SIGTERM" : "SIGINT");
  await platform.seen(/stopping: SIG\w+; requests in flight get 30 s, a second signal ends them at once/);
  const [response] = (await once(ends.end("more"), "response")) as [IncomingMessage];
  assert.equal(response.resume().statusCode, 200);
  let isAtOnce = false;
  const atOnce = platform.seen(/stopping at once: SIGTERM/).then(() => (isAtOnce = true));
  // Sends the signal repeatedly, because a signal that arrives too soon after the first one counts as the same stop.
  await eventually(() => isAtOnce || !platform.child.kill("SIGTERM"));
  await atOnce;
  assert.deepEqual(await platform.ended, { code: null, signal: "SIGTERM" });
  await cut;
});

test("a platform without authentication listens only on loopback unless explicitly allowed", () => {
  for (const host of ["0.0.0.0", "::", "platform.example"]) {
    const data = join(root, "exposed");
    const done = spawnSync(process.execPath, [main, "up", "--open", `--host=${host}`, "--port=0", `--data=${data}`]);
    assert.equal(done.status, 1);
    assert.match(
      String(done.stderr),
      /^galatea up: without authentication, anyone who reaches \S+ could run code on this machine: remove --open, or use --insecure .*\n$/,
    );
    assert.ok(!existsSync(data));
  }
});

test("unreadable keys end the start with one sentence", async () => {
  const file = join(root, "no-keys");
  await writeFile(file, "[default]\n");
  for (const path of [file, join(root, "absent")]) {
    const done = spawnSync(process.execPath, [main, "up", "--port=0", `--credentials=${path}`, `--data=${root}/d`]);
    assert.equal(done.status, 1);
    assert.match(String(done.stderr), /^galatea up: .*(?:has no aws_access_key_id|ENOENT).*\n$/);
  }
  const both = spawnSync(process.execPath, [main, "up", `--credentials=${file}`, "--insecure"]);
  assert.match(String(both.stderr), /^--credentials and --insecure cannot be used together\n/);
});

test("a quota of objects is refused over an S3 service, which has its own", () => {
  const flags = ["--objects=http://127.0.0.1:9", "--endpoint-objects-bytes=1"];
  const { status, stderr } = spawnSync(process.execPath, [main, "up", ...flags]);
  assert.equal(status, 1);
  assert.match(
    String(stderr),
    /^--endpoint-objects-bytes and --objects cannot be used together: set a quota in the S3 service/,
  );
});

test("instances run in one kind of location: processes of this machine, pods, or agents", () => {
  const engine = "--container-engine=unix:///run/docker.sock";
  const cases: readonly (readonly [flags: readonly string[], text: RegExp])[] = [
    [["--pods=pods.json", "--agent=a=https://a:1"], /^--pods and --agent cannot be used together\n/],
    [["--pods=pods.json", engine], /^--pods and --container-engine cannot be used together: /],
    [["--agent=a=https://a:1", engine], /^--agent and --container-engine cannot be used together: /],
  ];
  for (const [flags, text] of cases) {
    const { status, stderr } = spawnSync(process.execPath, [main, "up", ...flags], { encoding: "utf8" });
    assert.equal(status, 1);
    assert.match(stderr, text);
  }
});

test("without requests in flight a stop ends with exit code 0", async () => {
  const platform = up(join(root, "idle"));
  await platform.seen(/at (http:\S+)/);
  platform.child.kill("SIGINT");
  assert.deepEqual(await platform.ended, { code: 0, signal: null });
});

test("an --invokable-endpoint that is not a valid endpoint name is rejected", () => {
  const words = [main, "up", "--port=0", `--data=${join(root, "refused")}`, "--invokable-endpoint=a/b"];
  const { status, stderr } = spawnSync(process.execPath, words, { encoding: "utf8" });
  const text = "galatea up: --invokable-endpoint must be the name of an endpoint, or * for all (found 'a/b')\n";
  assert.deepEqual([status, stderr], [1, text]);
});
