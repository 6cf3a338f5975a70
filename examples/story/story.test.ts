import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { cacheDirectory } from "../../conformance/environments/index.ts";

const main = fileURLToPath(new URL("main.ts", import.meta.url));
/** The data directory is kept between runs, because the Python environment and the weights take time to download. */
const data = join(cacheDirectory(process.env), "story-test");
let root: string;

before(async () => {
  root = await mkdtemp(join(tmpdir(), "gal-story-"));
  // A platform rejects records of another release.
  for (const name of ["records", "snapshots"]) await rm(join(data, "platform", name), { recursive: true, force: true });
});
after(() => rm(root, { recursive: true }));

interface Reported {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs the story, and sends it all signals at the first output that matches `stopAt`. */
function story(
  args: readonly string[],
  more: {
    readonly env?: NodeJS.ProcessEnv;
    readonly stopAt?: RegExp;
    readonly signals?: readonly NodeJS.Signals[];
  } = {},
): Promise<Reported> {
  const child = spawn(process.execPath, [main, ...args], {
    stdio: ["ignore", "pipe", "pipe"],
    env: more.env ?? process.env,
  });
  let stdout = "";
  let stderr = "";
  let signals = more.signals ?? [];
  child.stdout.on("data", (chunk: Buffer) => {
    stdout += String(chunk);
    if (more.stopAt?.test(stdout) !== true) return;
    for (const signal of signals) child.kill(signal);
    signals = [];
  });
  child.stderr.on("data", (chunk: Buffer) => (stderr += String(chunk)));
  return new Promise((resolve) => child.once("close", (code) => resolve({ code, stdout, stderr })));
}

test("an invalid option ends npm start with one sentence, and --help prints the options", async () => {
  assert.deepEqual(await story(["--port", "abc"]), {
    code: 1,
    stdout: "",
    stderr: "Invalid option value. Got abc for --port, expected an integer\nTry `npm start -- --help`.\n",
  });
  const { code, stdout } = await story(["--help"]);
  assert.equal(code, 0);
  assert.match(stdout, /^Usage: npm start -- \[options\]$/m);
});

test("the error without Python lists what was searched and how to install Python", async () => {
  const env = { ...process.env, PATH: root };
  const { code, stderr } = await story(["--data", join(root, "no-python")], { env });
  assert.equal(code, 1);
  assert.match(stderr, /^\nno Python 3\.9 or newer was found \(.*\)\. Install it with: apt-get install .*\n$/);
});

test("the error for a port in use is one line", async () => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    const { port } = server.address() as AddressInfo;
    const { code, stderr } = await story(["--data", data, "--port", String(port)]);
    assert.equal(code, 1);
    assert.match(stderr, /^\ngalatea up: .*address already in use.*; choose another with --port.*\n$/);
  } finally {
    server.close();
  }
});

test("repeated SIGINT and SIGTERM end every step with the signal's exit code and without error output", async () => {
  const fresh = ["--data", join(root, "stopped"), "--port=0"];
  const kept = ["--data", data, "--port=0"];
  for (const [args, stopAt, signal, expected] of [
    [fresh, /one endpoint\n\n/, "SIGINT", 130],
    [kept, /Python environment: done/, "SIGTERM", 143],
    [kept, /platform: done/, "SIGINT", 130],
  ] as const) {
    const reported = await story(args, { stopAt, signals: [signal, signal, signal] });
    assert.deepEqual({ code: reported.code, stderr: reported.stderr }, { code: expected, stderr: "" }, String(stopAt));
    // A signal between two steps ends none, so the last line may be "done".
    assert.match(reported.stdout, /: (?:stopped|done), [^\n]+\n$/);
  }
});
