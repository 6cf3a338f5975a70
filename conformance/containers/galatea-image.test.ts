/** Galatea's own image, as `packaging/offline-image.sh` makes it of the wheel: its size, and what it does without privileges and without a writable file system. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { after, test } from "node:test";
import { ensureGalateaImage } from "../../cluster/images.ts";
import { cacheDirectory, freePorts } from "../environments/index.ts";
import { sendRequest } from "../faults/http-client.ts";
import { until } from "../faults/until.ts";
import { startDocker } from "./docker-engine.ts";

const root = join(import.meta.dirname, "../..");
const imageBytesMax = 350_000_000;
const confined = ["--detach", "--read-only", "--tmpfs=/tmp", "--cap-drop=ALL", "--security-opt=no-new-privileges"];

execFileSync(process.execPath, [join(root, "scripts/build.ts")], { stdio: "ignore" });
const making = { signal: new AbortController().signal, progress: () => {} };
const archive = await ensureGalateaImage(cacheDirectory(process.env), making);
const engine = await startDocker();
after(() => engine[Symbol.asyncDispose]());
await engine.docker("load", "--input", archive);

test("the image has less than 350 MB, no root user, and a health check", async () => {
  const inspected = await engine.docker("image", "inspect", "galatea");
  const [image] = JSON.parse(inspected) as [
    { Size: number; Config: { User: string; Healthcheck: { Test: string[] } } },
  ];
  assert.ok(image.Size < imageBytesMax, `${image.Size} bytes`);
  assert.equal(image.Config.User, "galatea");
  assert.equal(image.Config.Healthcheck.Test[0], "CMD");
});

test("galatea up becomes healthy without capabilities and with a read-only file system", async () => {
  const id = await engine.docker("run", ...confined, "--network=none", "galatea");
  const health = () => engine.docker("inspect", "--format={{.State.Status}} {{.State.Health.Status}}", id);
  const last = await until("the platform is healthy", async () => {
    const now = await health();
    return now === "running starting" ? null : now;
  });
  assert.equal(last, "running healthy", await engine.docker("logs", id));
  await engine.docker("stop", id);
  assert.equal(await engine.docker("inspect", "--format={{.State.ExitCode}}", id), "0");
});

test("galatea serve loads a Python model with numpy and answers with a read-only file system", async () => {
  const [port = 0] = await freePorts(1);
  const mount = `--volume=${join(root, "examples/add_sub/models")}:/models:ro`;
  const flags = [
    `--http-port=${port}`,
    "--allow-grpc=false",
    "--allow-metrics=false",
    "--python=/opt/galatea/bin/python",
  ];
  const words = ["galatea", "serve", "--model-repository=/models", ...flags];
  const id = await engine.docker("run", ...confined, "--network=host", mount, ...words);
  const isReady = () =>
    sendRequest(port, { path: "/v2/health/ready", method: "GET" }).then(({ status }) => status === 200);
  await until("the server is ready", async () => {
    assert.equal(
      await engine.docker("inspect", "--format={{.State.Status}}", id),
      "running",
      await engine.docker("logs", id),
    );
    return await isReady().catch(() => false);
  });
  const row = { datatype: "FP32", shape: [1, 4], data: [1, 2, 3, 4] };
  const body = JSON.stringify({ inputs: ["INPUT0", "INPUT1"].map((name) => ({ name, ...row })) });
  const reply = await sendRequest(port, { path: "/v2/models/add_sub/infer", body });
  assert.equal(reply.status, 200, reply.body.toString());
  const { outputs } = JSON.parse(reply.body.toString()) as { outputs: { data: number[] }[] };
  assert.deepEqual(outputs[0]?.data, [2, 4, 6, 8]);
  await engine.docker("rm", "--force", id);
});

test("the image has the client of Kubernetes, which --pods loads", async () => {
  const run = engine.docker(
    "run",
    "--rm",
    "--read-only",
    "--network=none",
    "galatea",
    "up",
    "--pods=/absent",
    "--data=/data",
  );
  await assert.rejects(run, /galatea up: cannot read the file of --pods: ENOENT/);
});
