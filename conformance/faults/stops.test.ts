/** SIGTERM at every moment of a start: while interpreters are activated and forked, and while models are completed and initialized. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { chmod, mkdir, readdir, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { test } from "node:test";
import { seededRandom } from "../seeded-random.ts";
import { writeFaultyModel } from "./faulty-model.ts";
import { descendantsOf } from "./processes.ts";
import { assertNothingLeft, compileCache, createWorkspace, type Workspace } from "./serving.ts";

const main = fileURLToPath(new URL("../../packages/galatea/src/main.ts", import.meta.url));
const endedWithinMs = testTimeoutMs;
/** The rounds end after this time, whatever their number. */
const budgetMs = 40_000;
const roundsMax = 30;
const roundsMin = 5;

/** An environment with an activation script and the interpreter of the product's environment. */
async function writeEnvironment(workspace: Workspace): Promise<string> {
  const directory = join(workspace.directory, "environment");
  await mkdir(join(directory, "bin"), { recursive: true });
  const found = await readdir(join(workspace.data, "python"));
  const generated = found.find((name) => /^[0-9a-f]{16}$/.test(name));
  assert.ok(generated, "the product's Python environment has been created");
  const python = join(directory, "bin", "python");
  await writeFile(python, `#!/bin/sh\nexec ${join(workspace.data, "python", generated, "bin", "python")} "$@"\n`);
  await chmod(python, 0o755);
  await writeFile(
    join(directory, "bin", "activate"),
    `touch ${join(workspace.directory, "reached.activate")}\nsleep 0.05\n`,
  );
  return directory;
}

const program = (directory: string) => `import os, time
import numpy as np
import triton_python_backend_utils as pb_utils
def reach(place):
    open(os.path.join(${JSON.stringify(directory)}, "reached." + place), "w").close()
    time.sleep(0.03)
reach("import")
import colorsys
class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        reach("complete")
        return config
    def initialize(self, args):
        reach("initialize")
    def execute(self, requests):
        return []
`;
import { testTimeoutMs } from "../../packages/base/src/core/eventually-fixture.ts";

const events = ["activate", "import", "complete", "initialize", "spawned", "ready"] as const;
type Moment = { readonly afterMs: number } | { readonly event: (typeof events)[number]; readonly afterMs: number };

function momentOf(random: () => number): Moment {
  const at = Math.floor(random() * (events.length + 2));
  const event = events[at];
  return event === undefined ? { afterMs: random() * 1500 } : { event, afterMs: random() < 0.5 ? 0 : random() * 60 };
}

async function isReached(
  workspace: Workspace,
  moment: Moment,
  seen: { pid: number; printed: string },
): Promise<boolean> {
  if (!("event" in moment)) return true;
  if (moment.event === "spawned") return descendantsOf(seen.pid).length > 0;
  if (moment.event === "ready") return seen.printed.includes("Started HTTPService");
  return (await stat(join(workspace.directory, `reached.${moment.event}`)).catch(() => null)) !== null;
}

async function round(workspace: Workspace, seed: number): Promise<void> {
  const moment = momentOf(seededRandom(seed));
  const what = `round ${seed}, ${JSON.stringify(moment)}`;
  for (const event of events) await rm(join(workspace.directory, `reached.${event}`), { force: true });
  const flags = ["--http-port=0", "--allow-metrics=false", "--allow-grpc=false", `--data=${workspace.data}`];
  const child = spawn(process.execPath, [main, "serve", `--model-repository=${workspace.repository}`, ...flags], {
    env: {
      PATH: process.env["PATH"] ?? "",
      HOME: workspace.directory,
      TMPDIR: workspace.temporary,
      NODE_COMPILE_CACHE: compileCache,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const seen = { pid: child.pid ?? 0, printed: "" };
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (chunk: Buffer) => (seen.printed += chunk.toString()));
  const ended = new Promise<string>((resolve) => {
    child.once("exit", (code, signal) => resolve(String(code ?? signal)));
  });
  // Before the process listens for the signal, the system ends it; that is not a stop by the server.
  const isOver = () => child.exitCode !== null || child.signalCode !== null;
  while (!isOver() && !(await isReached(workspace, moment, seen)))
    await new Promise((resolve) => setTimeout(resolve, 1));
  await new Promise((resolve) => setTimeout(resolve, moment.afterMs));
  child.kill("SIGTERM");
  const timer = new Promise<"late">((resolve) => setTimeout(() => resolve("late"), endedWithinMs).unref());
  const end = await Promise.race([ended, timer]);
  if (end === "late") child.kill("SIGKILL");
  assert.ok(["0", "SIGTERM"].includes(end), `${what}: it ended with ${end}\n${seen.printed}`);
  if ("event" in moment) assert.equal(end, "0", `${what}: it ended with ${end}\n${seen.printed}`);
  await assertNothingLeft(workspace);
}

test("a server that is stopped at any moment of its start exits at once, and leaves nothing behind", async () => {
  const workspace = await createWorkspace();
  try {
    const environment = await writeEnvironment(workspace);
    const parameter = `parameters { key: "EXECUTION_ENV_PATH" value { string_value: "${environment}" } }`;
    for (const name of ["packed", "packed_too"])
      await writeFaultyModel(workspace.repository, name, { more: parameter, text: program(workspace.directory) });
    await writeFaultyModel(workspace.repository, "plain", { text: program(workspace.directory) });
    const untilMs = performance.now() + budgetMs;
    const firstSeed = Number(process.env["GALATEA_STOPS_SEED"] ?? 1);
    for (let count = 0; count < roundsMax && (count < roundsMin || performance.now() < untilMs); count++)
      await round(workspace, firstSeed + count);
  } finally {
    await rm(workspace.directory, { recursive: true, force: true });
  }
});
