import assert from "node:assert/strict";
import { execFile, spawn, type ChildProcess } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { cacheDirectory, ensureEnvironment } from "../environments/index.ts";

const main = fileURLToPath(new URL("../../server/src/main.ts", import.meta.url));
const workflow = fileURLToPath(new URL("workflow.py", import.meta.url));
const root = mkdtempSync(join(tmpdir(), "gal-conf-"));
let python = "";
let platform: { readonly child: ChildProcess; readonly url: string };

/** `galatea up` on a free port; resolves with the address it prints. */
async function up(): Promise<typeof platform> {
  const child = spawn(process.execPath, [main, "up", "--port", "0", "--data", join(root, "data")], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let text = "";
  for await (const chunk of child.stdout) {
    text += String(chunk);
    const url = /at (http:\S+)/.exec(text)?.[1];
    if (url !== undefined) return { child, url };
  }
  throw new Error(`the platform ended before it was up: ${text}`);
}

async function ended(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = new Promise((resolve) => child.once("exit", resolve));
  child.kill(signal);
  await exited;
}

/** What `galatea env` prints for this platform. */
async function variables(): Promise<Record<string, string>> {
  const { hostname, port } = new URL(platform.url);
  const args = [main, "env", "--proxy", "--host", hostname, "--port", port, "--data", join(root, "data")];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  const pairs = [...stdout.matchAll(/^export (\w+)=(.*)$/gm)];
  return Object.fromEntries(pairs.map(([, name = "", value = ""]) => [name, value.replace(/^'(.*)'$/, "$1")]));
}

async function run(phase: string): Promise<string> {
  const env = { ...process.env, ...(await variables()) };
  return await new Promise((resolve, reject) => {
    execFile(python, [workflow, phase], { env, timeout: 300_000 }, (error, stdout, stderr) => {
      if (error === null) resolve(stdout);
      else reject(new Error(`${phase}: ${error.message}\n${stdout}\n${stderr}`));
    });
  });
}

before(async () => {
  ({ python } = await ensureEnvironment(cacheDirectory(process.env), "clients"));
  platform = await up();
});

after(async () => {
  await ended(platform.child, "SIGTERM");
  rmSync(root, { recursive: true, force: true });
});

test("the multi-model workflow with the real boto3: deploy, invoke, errors, metrics, logs", async () => {
  const output = await run("deploy");
  assert(!output.includes("FAILED"), output);
});

test("after kill -9 of the platform everything is in service again", async () => {
  await ended(platform.child, "SIGKILL");
  platform = await up();
  await run("after-restart");
  await run("clean");
});

// Its own deploys sleep thirty seconds each before they look for the first time.
test("the sagemaker SDK: default bucket, execution role, Model.deploy, MultiDataModel", async () => {
  await run("sdk");
});
