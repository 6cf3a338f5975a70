import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, beforeEach, test } from "node:test";
import { ByteBudget, InferenceError, silentLogger, systemClock } from "@galatea/base";
import { FakeEngine } from "../fake-engine.ts";
import { addUsualModels } from "../fake-models.ts";
import { connectOverMessages } from "../engine-messages/connect-over-messages.ts";
import { usualHttpLimits } from "../http-listener/limits-fixture.ts";
import { RawConnection, sendRawRequest, post, type RawReply } from "../raw-client.ts";
import { defaultContainerLimits, openContainer, type ContainerOptions } from "./index.ts";
import type { Listener } from "../listener.ts";
import { eventually } from "@galatea/base/core/eventually-fixture.ts";

// Statuses, bodies and content types are those of tritonserver 2.51 on its SageMaker port in multi-model mode, unless a test's name says
// otherwise.

const engine = new FakeEngine();
/** Time limit of the last request to an archive's model, in milliseconds. */
let executionMsMax: number | null = null;
const remote = connectOverMessages(engine);
let mlRoot: string;
let socketPath: string;
let listener: Listener;
const budget = new ByteBudget(2 ** 30);

const options = (address: ContainerOptions["address"]): ContainerOptions => ({
  engine: remote.engine,
  clock: systemClock,
  limits: usualHttpLimits,
  containerLimits: { ...defaultContainerLimits, modelsMax: 2 },
  pingMode: "live",
  onPing: () => {},
  unconfined: () => ({ memory: "no group below /sys/fs/cgroup/ü" }),
  defaultModelName: "add_sub",
  language: { kind: "triton", inferenceType: "infer" },
  mlRoot,
  chooseModelDirectory: (directory) =>
    Promise.resolve({ repositoryDirectory: directory, modelDirectoryName: "add_sub" }),
  budget,
  logger: silentLogger,
  address,
});

before(async () => {
  mlRoot = await mkdtemp(join(tmpdir(), "container-"));
  socketPath = join(mlRoot, "container.sock");
  for (const hash of ["h1", "h2"]) await mkdir(join(mlRoot, "models", hash, "model", "add_sub"), { recursive: true });
  await symlink(join(mlRoot, "models", "h1", "model"), join(mlRoot, "models", "h2", "model", "stolen"));
  addUsualModels(engine);
  listener = await openContainer(options({ socketPath }));
});
after(async () => {
  await listener.close(AbortSignal.abort());
  await rm(mlRoot, { recursive: true });
  assert.equal(engine.arena.usedBytes, 0, "blocks left over");
  assert.equal(remote.openCount, 0, "leases, blocks or calls were not released");
  assert.equal(budget.usedBytes, 0, "bytes left over");
});
beforeEach(async () => {
  for (const id of ["h1", "h2", "h3"]) await request("DELETE", `/models/${id}`);
  engine.openNamespaceWith = (source) => {
    const sixteen = ["FP32", [16]] as const;
    engine.add(
      source.servedName,
      {
        inputs: { INPUT0: sixteen },
        outputs: { OUTPUT0: sixteen },
        batches: true,
        run: (call) => {
          executionMsMax = call.executionMsMax;
          return [{ ...call.inputs[0]!, name: "OUTPUT0", data: call.inputs[0]!.data.slice(), block: null }];
        },
      },
      source.namespace,
    );
    return Promise.resolve();
  };
});

const target = "X-Amzn-SageMaker-Target-Model: tenant.tar.gz\r\n";
const request = (method: string, path: string, headers = ""): Promise<RawReply> =>
  sendRawRequest(socketPath, `${method} ${path} HTTP/1.1\r\nHost: x\r\n${headers}\r\n`);
const load = (id: string, url = `/opt/ml/models/${id}/model`, headers = target): Promise<RawReply> =>
  sendRawRequest(socketPath, post("/models", JSON.stringify({ model_name: id, url }), headers));
const sixteen = `[${Array.from({ length: 16 }, (_, index) => index).join(",")}]`;
const body = `{"inputs":[{"name":"INPUT0","shape":[1,16],"datatype":"FP32","data":${sixteen}}]}`;
const both = `{"inputs":[{"name":"INPUT0","shape":[1,16],"datatype":"FP32","data":${sixteen}},{"name":"INPUT1","shape":[1,16],"datatype":"FP32","data":${sixteen}}]}`;

function seen(reply: RawReply): [number, string, string | undefined] {
  return [reply.status, reply.body, reply.headers.get("content-type")];
}

test("ping responds according to its mode; other methods and paths are rejected as in Triton", async () => {
  const pinged = await request("GET", "/ping");
  assert.deepEqual(seen(pinged), [200, "", "text/plain"]);
  assert.equal(pinged.headers.get("x-galatea-unconfined"), '{"memory":"no group below /sys/fs/cgroup/\\u00fc"}');
  assert.deepEqual(seen(await sendRawRequest(socketPath, post("/ping", ""))), [
    405,
    '{"error":"Method Not Allowed"}',
    "text/plain",
  ]);
  engine.live = false;
  assert.equal((await request("GET", "/ping")).status, 400);
  engine.live = true;
  for (const [method, path] of [
    ["GET", "/nope"],
    ["GET", "/v2"],
    ["PUT", "/models"],
    ["PUT", "/models/h1"],
    ["GET", "/models/a/b/c"],
    ["GET", "/models/h1/"],
  ] as const) {
    assert.deepEqual(seen(await request(method, path)), [400, "", "text/plain"], `${method} ${path}`);
  }
});

test("invocations run the default model with the statuses of the KServe port", async () => {
  const good = await sendRawRequest(socketPath, post("/invocations", both));
  assert.equal(good.status, 200);
  assert.match(good.body, /^\{"model_name":"add_sub"/);
  assert.equal((await sendRawRequest(socketPath, post("/invocations", "{"))).status, 500);
  assert.equal((await request("GET", "/invocations")).body, '{"error":"Method Not Allowed"}');
});

test("a model is loaded, listed, described, invoked, unloaded", async () => {
  assert.deepEqual(seen(await request("GET", "/models/h1")), [404, "", "text/plain"]);
  const loaded = await load("h1");
  assert.deepEqual([loaded.status, loaded.body], [200, ""]);
  assert.ok(Number(loaded.headers.get("x-galatea-load-milliseconds")) >= 0);
  assert.equal(loaded.headers.get("x-galatea-model-bytes"), "1000");
  assert.deepEqual(engine.namespaces.get("h1"), {
    namespace: "h1",
    servedName: "tenant.tar.gz",
    repositoryDirectory: join(mlRoot, "models", "h1", "model"),
    modelDirectoryName: "add_sub",
  });
  const described = { modelName: "h1", modelUrl: "/opt/ml/models/h1/model" };
  assert.deepEqual(JSON.parse((await request("GET", "/models/h1")).body), described);
  assert.deepEqual(JSON.parse((await request("GET", "/models")).body), { models: [described] });
  assert.deepEqual(seen(await load("h1")), [
    409,
    `{"error":"model repository '/opt/ml/models/h1/model' has already been registered"}`,
    "text/plain",
  ]);
  const invoked = await sendRawRequest(socketPath, post("/models/h1/invoke", body, target));
  assert.equal(invoked.status, 200);
  assert.match(invoked.body, /^\{"model_name":"tenant\.tar\.gz","model_version":"1"/);
  assert.equal((await request("DELETE", "/models/h1", target)).status, 200);
  assert.deepEqual(seen(await request("DELETE", "/models/h1")), [404, "", "text/plain"]);
  assert.deepEqual(seen(await sendRawRequest(socketPath, post("/models/h1/invoke", body, target))), [
    404,
    "",
    "text/plain",
  ]);
});

test("every error of an invocation is 400 of type JSON, whatever its text, and 507 where its reason is that there is no memory", async () => {
  await load("h1");
  const invoke = (text: string) => sendRawRequest(socketPath, post("/models/h1/invoke", text, target));
  assert.deepEqual(seen(await invoke("{")), [
    400,
    '{"error":"failed to parse the request JSON buffer: Missing a name for object member. at 1"}',
    "application/json",
  ]);
  assert.equal((await invoke('{"inputs":[]}')).status, 400);
  const texts = ["CUDA out of memory. Tried to allocate 2 GiB", "no ROOM for it", "OOM", "MemoryError"];
  for (const text of texts)
    for (const [reason, status] of [
      [null, 400],
      ["out-of-memory", 507],
    ] as const) {
      const run = () => {
        throw new InferenceError("INTERNAL", text, { reason });
      };
      engine.add("tenant.tar.gz", { inputs: { INPUT0: ["FP32", [16]] }, outputs: {}, batches: true, run }, "h1");
      assert.equal((await invoke(body)).status, status, text);
    }
});

test("a call may limit the duration of its execution; without a limit it may take any time", async () => {
  await load("h1");
  for (const [header, limit] of [
    ["X-Galatea-Call-Limit-Ms: 59000\r\n", 59_000],
    ["X-Galatea-Call-Limit-Ms: soon\r\n", null],
    ["", null],
  ] as const) {
    assert.equal((await sendRawRequest(socketPath, post("/models/h1/invoke", body, `${target}${header}`))).status, 200);
    assert.equal(executionMsMax, limit);
  }
});

test("on a TCP port, calls cannot limit the duration of their execution", async () => {
  const open = await openContainer(options({ host: "127.0.0.1", port: 0 }));
  const model = JSON.stringify({ model_name: "h3", url: "/opt/ml/models/h1/model" });
  assert.equal((await sendRawRequest(open.port, post("/models", model, target))).status, 200);
  const limit = "X-Galatea-Call-Limit-Ms: 1\r\n";
  assert.equal((await sendRawRequest(open.port, post("/models/h3/invoke", body, `${target}${limit}`))).status, 200);
  assert.equal(executionMsMax, null);
  assert.equal((await sendRawRequest(open.port, `DELETE /models/h3 HTTP/1.1\r\nHost: x\r\n\r\n`)).status, 200);
  await open.close(AbortSignal.abort());
});

test("a request whose header names another model than its path does not reach it (server#8923)", async () => {
  await load("h1");
  const other = "X-Amzn-SageMaker-Target-Model: other.tar.gz\r\n";
  const text = '{"error":"X-Amzn-SageMaker-Target-Model header does not match the model requested in the URL"}';
  assert.deepEqual(seen(await sendRawRequest(socketPath, post("/models/h1/invoke", body, other))), [
    400,
    text,
    "application/json",
  ]);
  assert.deepEqual(seen(await request("DELETE", "/models/h1", other)), [400, text, "text/plain"]);
  assert.equal((await sendRawRequest(socketPath, post("/models/h1/invoke", body))).status, 200);
});

test("requests and responses with binary bodies give the length of the JSON header in the content type", async () => {
  await load("h1");
  const header = `{"parameters":{"binary_data_output":true},"inputs":[{"name":"INPUT0","shape":[1,16],"datatype":"FP32","parameters":{"binary_data_size":64}}]}`;
  const type = (size: unknown) =>
    `${target}Content-Type: application/vnd.sagemaker-triton.binary+json;json-header-size=${String(size)}\r\n`;
  const data = Buffer.from(Float32Array.from({ length: 16 }, (_, index) => index / 3).buffer);
  const binary = (size: unknown) =>
    sendRawRequest(socketPath, post("/models/h1/invoke", Buffer.concat([Buffer.from(header), data]), type(size)));
  const reply = await binary(header.length);
  const size = /^application\/vnd\.sagemaker-triton\.binary\+json;json-header-size=(\d+)$/.exec(
    reply.headers.get("content-type")!,
  )![1];
  assert.ok(Buffer.from(reply.body.slice(Number(size)), "latin1").equals(data));
  assert.equal(reply.headers.has("inference-header-content-length"), false);
  assert.equal(
    (await binary(99999)).body,
    `{"error":"inference header size should be in range (0, ${header.length + 64}), got: 99999"}`,
  );
  assert.equal((await binary("abc")).body, '{"error":"Unable to parse inference header size, got: abc"}');
});

test("paths outside of an archive's model folder are rejected, also through links (Triton registers any path)", async () => {
  for (const url of [
    "/tmp/x",
    "/opt/ml/models/../model",
    "/opt/ml/models/h1/model/..",
    "/opt/ml/models/h1/other",
    "/opt/ml/models/h1/model/a/b",
  ]) {
    const reply = await load("h1", url);
    assert.deepEqual(
      [reply.status, reply.body],
      [
        400,
        `{"error":${JSON.stringify(`Invalid "url" '${url}': expected a path of the form /opt/ml/models/<hash>/model[/<subdir>]`)}}`,
      ],
    );
  }
  assert.deepEqual(seen(await load("h1", "/dev/shm")), [400, "", "text/plain"]);
  for (const url of ["/opt/ml/models/none/model", "/opt/ml/models/h2/model/stolen"]) {
    assert.equal((await load("h2", url)).body, `{"error":"failed to register '${url}', repository not found"}`);
  }
});

test("a failed load registers nothing: 507 when memory is short, else 400; invalid load bodies are 400", async () => {
  engine.openNamespaceWith = () =>
    Promise.reject(new InferenceError("UNAVAILABLE", "the budget is used up", { reason: "out-of-memory" }));
  assert.equal((await load("h1")).status, 507);
  const reported = "load failed for model 'x': Out of memory";
  engine.openNamespaceWith = () => Promise.reject(new InferenceError("INVALID_ARG", reported));
  assert.equal((await load("h1")).status, 400);
  engine.openNamespaceWith = () => Promise.reject(new InferenceError("INVALID_ARG", "load failed for model 'x'"));
  assert.deepEqual(seen(await load("h1")), [400, `{"error":"load failed for model 'x'"}`, "text/plain"]);
  assert.deepEqual(JSON.parse((await request("GET", "/models")).body), { models: [] });
  for (const text of [
    "",
    "{",
    "[]",
    '{"model_name":"a"}',
    '{"model_name":"../x","url":"/opt/ml/models/h1/model"}',
    '{"model_name":3,"url":"x"}',
  ]) {
    assert.equal((await sendRawRequest(socketPath, post("/models", text))).status, 400, text);
  }
});

test("calls for a model wait for its running load or unload", async () => {
  const gate = Promise.withResolvers<void>();
  const entered = Promise.withResolvers<void>();
  engine.openNamespaceWith = () => {
    entered.resolve();
    return gate.promise;
  };
  const first = load("h1");
  await entered.promise;
  const second = load("h1");
  const removal = request("DELETE", "/models/h1");
  assert.equal((await request("GET", "/models/h1")).status, 404);
  gate.resolve();
  assert.equal((await first).status, 200);
  assert.deepEqual([(await second).status, (await removal).status], [409, 200]);
});

test("a client that disconnects during a load aborts it", async () => {
  const [opening, aborted] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  engine.openNamespaceWith = (_source, signal) =>
    new Promise((_resolve, reject) => {
      opening.resolve();
      signal.addEventListener("abort", () => {
        aborted.resolve();
        reject(new InferenceError("CANCELLED", ""));
      });
    });
  const connection = await RawConnection.open(socketPath);
  connection.send(post("/models", '{"model_name":"h1","url":"/opt/ml/models/h1/model"}'));
  await opening.promise;
  connection.socket.destroy();
  await aborted.promise;
  await eventually(() => listener.activeCount === 0);
  assert.equal((await request("GET", "/models/h1")).status, 404);
});
