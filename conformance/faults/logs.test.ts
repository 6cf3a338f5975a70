/** Readers of the log that stop reading: the server continues in bounded memory, and stops on request. */
import assert from "node:assert/strict";
import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { closeSync, constants, openSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { freePorts } from "../environments/launch.ts";
import { sendRequest, assertEchoes, faultyRequest, infer } from "./http-client.ts";
import { writeFaultyModel } from "./faulty-model.ts";
import { residentBytes } from "./processes.ts";
import { compileCache, createWorkspace, type Workspace } from "./serving.ts";
import { until } from "./until.ts";

const main = fileURLToPath(new URL("../../packages/galatea/src/main.ts", import.meta.url));
const mebibyte = 2 ** 20;

/** Logs 4 MB for each request. */
const talker = `import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        for line in range(400):
            pb_utils.Logger.log_info("x" * 10000)
        return [pb_utils.InferenceResponse([
            pb_utils.Tensor("OUT", pb_utils.get_input_tensor_by_name(request, "VALUE").as_numpy()),
            pb_utils.Tensor("TEXT", np.array([""], object))]) for request in requests]
`;

interface Logging extends AsyncDisposable, Workspace {
  readonly child: ChildProcess;
  readonly port: number;
}

async function start(flags: (workspace: Workspace) => readonly string[]): Promise<Logging> {
  const workspace = await createWorkspace();
  await writeFaultyModel(workspace.repository, "talker", { text: talker });
  await writeFaultyModel(workspace.repository, "faulty");
  const [port = 0] = await freePorts(1);
  const child = spawn(
    process.execPath,
    [
      main,
      "serve",
      `--model-repository=${workspace.repository}`,
      "--http-address=127.0.0.1",
      `--http-port=${port}`,
      "--allow-metrics=false",
      `--data=${workspace.data}`,
      ...flags(workspace),
    ],
    {
      stdio: ["ignore", "pipe", "inherit"],
      env: { ...process.env, TMPDIR: workspace.temporary, NODE_COMPILE_CACHE: compileCache },
    },
  );
  const ended = once(child, "exit");
  child.stdout.resume();
  const ready = async () => (await sendRequest(port, { path: "/v2/health/ready" }).catch(() => null))?.status === 200;
  await until("the server is ready", ready);
  return {
    ...workspace,
    child,
    port,
    async [Symbol.asyncDispose]() {
      child.kill("SIGTERM");
      const [code] = (await ended) as [number | null];
      await rm(workspace.directory, { recursive: true, force: true });
      assert.equal(code, 0);
    },
  };
}

/** Many more lines than the buffer has space for. */
async function talkMuch({ child, port }: Logging): Promise<void> {
  await assertEchoes(port, "faulty");
  const before = residentBytes(child.pid!);
  for (let round = 0; round < 20; round++) {
    assert.equal((await infer(port, "talker", faultyRequest("talk"))).status, 200);
    assert.equal((await sendRequest(port, { path: "/v2/health/live" })).status, 200);
  }
  await assertEchoes(port, "faulty");
  assert.ok(residentBytes(child.pid!) - before < 64 * mebibyte, "the lines do not pile up");
}

test("a server whose output is no longer read serves, reports the number of lost lines, and exits", async () => {
  await using logging = await start(() => []);
  const output = logging.child.stdout!;
  output.pause();
  await talkMuch(logging);
  let text = "";
  output.setEncoding("utf8").on("data", (segment: string) => (text = (text + segment).slice(-mebibyte)));
  output.resume();
  const dropped = await until("the log has a line about it", () => /(\d+) log lines were dropped/.exec(text)?.[1]);
  assert.ok(Number(dropped) > 0);
  await infer(logging.port, "talker", faultyRequest("talk"));
  output.pause();
  for (let round = 0; round < 3; round++) await infer(logging.port, "talker", faultyRequest("talk"));
});

test("a server whose log file is an unread pipe serves and exits", async () => {
  using reader = {
    fd: -1,
    [Symbol.dispose](): void {
      closeSync(this.fd);
    },
  };
  await using logging = await start(({ directory }) => {
    const pipe = join(directory, "log.pipe");
    execFileSync("mkfifo", [pipe]);
    reader.fd = openSync(pipe, constants.O_RDONLY | constants.O_NONBLOCK);
    return [`--log-file=${pipe}`];
  });
  await talkMuch(logging);
});
