import assert from "node:assert/strict";
import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, test } from "node:test";
import { fileURLToPath } from "node:url";

const main = fileURLToPath(new URL("../main.ts", import.meta.url));
let root: string;
const running = new Set<ChildProcess>();

before(async () => {
  root = await mkdtemp(join(tmpdir(), "gal-running-"));
});
afterEach(async () => {
  for (const child of running) await killed(child);
});
after(() => rm(root, { recursive: true, force: true }));

type Variables = Readonly<Record<string, string>>;

/**
 * An environment with directories that only these tests use, so that they do not find other platforms of this machine.
 */
const environment = (more: Variables = {}) => ({
  PATH: process.env.PATH,
  HOME: join(root, "home"),
  TMPDIR: root,
  NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
  ...more,
});

/** Starts a platform. Resolves with its process and its port when it is ready. */
async function up(args: readonly string[], more: Variables = {}): Promise<{ child: ChildProcess; port: string }> {
  const child = spawn(process.execPath, [main, "up", ...args], {
    env: environment(more),
    stdio: ["ignore", "pipe", "inherit"],
  });
  running.add(child);
  let text = "";
  for await (const chunk of child.stdout) {
    text += String(chunk);
    const [, port] = /at http:\S+:(\d+) /.exec(text) ?? [];
    if (port !== undefined) return { child, port };
  }
  throw new Error(`no platform came up: ${text}`);
}

async function killed(child: ChildProcess, signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
  running.delete(child);
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill(signal);
  await once(child, "exit");
}

function galatea(args: readonly string[], more: Variables = {}) {
  const done = spawnSync(process.execPath, [main, ...args], { encoding: "utf8", env: environment(more) });
  const value = (name: string) => new RegExp(`^export ${name}='?(.*?)'?$`, "m").exec(done.stdout)?.[1];
  return { ...done, url: value("AWS_ENDPOINT_URL"), key: value("AWS_ACCESS_KEY_ID"), region: value("AWS_REGION") };
}

test("env takes port, region and key from the platform that runs over its data directory, and flags have precedence", async () => {
  const credentials = join(root, "keys");
  await writeFile(
    credentials,
    "[default]\naws_access_key_id = OWNERSKEY\naws_secret_access_key = secret-of-the-owner\n",
  );
  const data = join(root, "first");
  const { child, port } = await up([
    `--data=${data}`,
    "--port=0",
    `--credentials=${credentials}`,
    "--region=eu-west-1",
  ]);
  const found = galatea(["env", `--data=${data}`]);
  assert.deepEqual([found.url, found.key, found.region], [`http://127.0.0.1:${port}`, "OWNERSKEY", "eu-west-1"]);
  const reported = galatea(["env", `--data=${data}`, "--host=gateway.example", "--port=443", "--region=us-west-2"]);
  assert.deepEqual(
    [reported.url, reported.key, reported.region],
    ["http://gateway.example:443", "OWNERSKEY", "us-west-2"],
  );
  assert.equal(found.stderr + reported.stderr, "");
  assert.deepEqual(galatea(["events", `--data=${data}`]).status, 0);
  await killed(child);
  const defaults = galatea(["env", `--data=${data}`]);
  assert.deepEqual([defaults.url, defaults.region], ["http://127.0.0.1:8770", "us-east-1"]);
  assert.notEqual(defaults.key, "OWNERSKEY");
  assert.ok(
    defaults.stderr.endsWith(
      `galatea env: no platform runs over '${data}' yet: the variables have the default address http://127.0.0.1:8770; ` +
        "run `galatea env` again after a start with another address\n",
    ),
    defaults.stderr,
  );
});

test("env without --data finds the only running platform; with several it requires --data", async () => {
  const [one, other] = [join(root, "one"), join(root, "other")];
  const first = await up([`--data=${one}`, "--port=0"]);
  const alone = galatea(["env"]);
  assert.equal(alone.url, `http://127.0.0.1:${first.port}`);
  assert.equal(alone.key, galatea(["env", `--data=${one}`]).key);
  const second = await up([`--data=${other}`, "--port=0"]);
  const refused = galatea(["env"]);
  assert.deepEqual([refused.status, refused.stdout], [1, ""]);
  assert.match(refused.stderr, /^galatea env: several platforms run: port .*; say which with --data or --port\n$/);
  for (const each of [first, second]) assert.ok(refused.stderr.includes(`port ${each.port} over '`), refused.stderr);
  assert.equal(galatea(["env", `--port=${second.port}`]).key, galatea(["env", `--data=${other}`]).key);
  await killed(first.child, "SIGTERM");
  assert.ok(!existsSync(join(one, "platform.json")));
  assert.equal(galatea(["env"]).url, `http://127.0.0.1:${second.port}`);
  // A killed platform does not remove its file; the next command that reads the list removes it.
  await killed(second.child);
  assert.equal(galatea(["env"]).url, "http://127.0.0.1:8770");
  assert.deepEqual(await readdir(join(root, "home/.local/share/galatea/platforms")), []);
});

test("a platform whose user's directory cannot be written is found by its data directory", async () => {
  const home = join(root, "no-directory");
  await writeFile(home, "");
  const data = join(root, "alone");
  const { port } = await up([`--data=${data}`, "--port=0"], { HOME: home });
  assert.equal(galatea(["env", `--data=${data}`], { HOME: home }).url, `http://127.0.0.1:${port}`);
});

test("env names the variables it needs if the platform's keys come from its environment", async () => {
  const data = join(root, "variables");
  const keys = { GALATEA_ACCESS_KEY_ID: "FROMTHEENV", GALATEA_SECRET_ACCESS_KEY: "secret-of-the-environment" };
  const { port } = await up([`--data=${data}`, "--port=0"], keys);
  const refused = galatea(["env", `--data=${data}`]);
  assert.deepEqual([refused.status, refused.stdout], [1, ""]);
  assert.equal(
    refused.stderr,
    `galatea env: the platform at port ${port} gets its keys from its environment variables: set GALATEA_ACCESS_KEY_ID and ` +
      "GALATEA_SECRET_ACCESS_KEY here as well, or name a file of them with --credentials\n",
  );
  assert.match(galatea(["events", `--data=${data}`]).stderr, /^galatea events: the platform at port .*\n$/);
  assert.equal(galatea(["env", `--data=${data}`], keys).key, "FROMTHEENV");
});
