/** Clients that are slow, disconnect, or send without reading: no other client waits for them, and their memory is released. */
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import {
  sendRequest,
  assertEchoes,
  faultyRequest,
  errorOf,
  infer,
  inferPath,
  load,
  outputOf,
  textOf,
} from "./http-client.ts";
import { writeFaultyModel } from "./faulty-model.ts";
import { arenaBytes, openFiles, residentBytes } from "./processes.ts";
import { openServing, type Serving } from "./serving.ts";
import { pidIn, until } from "./until.ts";
import { Wire } from "./wire.ts";

let serving: Serving;
let port: number;
const names = ["direct", "batched", "bounded", "pair"] as const;
before(async () => {
  serving = await openServing({
    flags: ["--model-control-mode=explicit", ...names.map((name) => `--load-model=${name}`)],
    write: async ({ repository }) => {
      await writeFaultyModel(repository, "direct");
      await writeFaultyModel(repository, "batched", { more: "dynamic_batching { }" });
      const bounded = "dynamic_batching { default_queue_policy { max_queue_size: 2 } }";
      await writeFaultyModel(repository, "bounded", { more: bounded });
      await writeFaultyModel(repository, "pair", { more: "instance_group [ { count: 2 kind: KIND_CPU } ]" });
    },
  });
  port = serving.server.httpPort;
});
after(async () => {
  await serving[Symbol.asyncDispose]();
});

const socketCount = () => openFiles(serving.server.pid).filter((path) => path.startsWith("socket:")).length;

class Wires implements Disposable {
  readonly list: Wire[] = [];
  async open(count: number, bytes: string | Uint8Array): Promise<void> {
    for (let i = 0; i < count; i++) {
      const wire = await Wire.open(port);
      wire.send(bytes);
      this.list.push(wire);
    }
  }
  [Symbol.dispose](): void {
    for (const wire of this.list) wire[Symbol.dispose]();
  }
}

/** Free memory that an arena keeps for the next request. */
const warmBytes = 16 * 2 ** 20;

async function assertNothingHeld(before: { readonly sockets: number; readonly arena: number }): Promise<void> {
  await until("their connections are closed", () => socketCount() <= before.sockets);
  await until("their tensors are released", () => arenaBytes(serving.server.pid) <= before.arena + warmBytes);
}
const holdings = () => ({ sockets: socketCount(), arena: arenaBytes(serving.server.pid) });

/** Number of requests that a model has received, including this one. */
const executedCount = async (model: string) =>
  textOf(await infer(port, model, faultyRequest("executed"))).split(",").length;

const head = (bodyBytes: number, more = "") =>
  `POST ${inferPath("direct")} HTTP/1.1\r\nHost: x\r\nContent-Length: ${bodyBytes}\r\n${more}\r\n`;

test("five hundred clients that never finish their headers do not delay other clients", async () => {
  await assertEchoes(port, "direct");
  const buffered = holdings();
  {
    using wires = new Wires();
    await wires.open(500, "POST /v2/models/direct/infer HTTP/1.1\r\nHost:");
    await assertEchoes(port, "direct");
  }
  await assertNothingHeld(buffered);
});

test("a hundred clients that announce a gigabyte each and send nothing delay no other client and take no memory", async () => {
  const buffered = holdings();
  const bytesBefore = residentBytes(serving.server.pid);
  {
    using wires = new Wires();
    const gigabyte = 2 ** 30;
    const header = JSON.stringify({
      inputs: [
        { name: "DO", datatype: "BYTES", shape: [1], data: ["echo"] },
        { name: "VALUE", datatype: "FP32", shape: [gigabyte / 4], parameters: { binary_data_size: gigabyte } },
      ],
    });
    const line = `Inference-Header-Content-Length: ${header.length}\r\n`;
    await wires.open(100, head(header.length + gigabyte, line) + header);
    await assertEchoes(port, "direct");
    assert.ok(residentBytes(serving.server.pid) - bytesBefore < 128 * 2 ** 20);
  }
  await assertNothingHeld(buffered);
});

test("a client that disconnects in the middle of its tensors leaves nothing behind", async () => {
  const buffered = holdings();
  {
    using wires = new Wires();
    const bytes = 8 * 2 ** 20;
    const header = JSON.stringify({
      inputs: [
        { name: "DO", datatype: "BYTES", shape: [1], data: ["echo"] },
        { name: "VALUE", datatype: "FP32", shape: [bytes / 4], parameters: { binary_data_size: bytes } },
      ],
    });
    const line = `Inference-Header-Content-Length: ${header.length}\r\n`;
    const beginning = Buffer.concat([
      Buffer.from(head(header.length + bytes, line) + header),
      Buffer.alloc(bytes / 2, 1),
    ]);
    await wires.open(8, beginning);
    await until("their bytes have arrived", () => arenaBytes(serving.server.pid) >= (7 * bytes) / 2);
    await assertEchoes(port, "direct");
  }
  await assertNothingHeld(buffered);
});

test("a client that sends one byte at a time gets its response", async () => {
  using wire = await Wire.open(port);
  const body = faultyRequest("echo", { value: [4, 5] });
  const request = head(body.length) + body;
  const reply = wire.reply();
  for (const byte of request) {
    wire.send(byte);
    await new Promise((resolve) => setImmediate(resolve));
  }
  const result = await reply;
  assert.equal(result?.status, 200);
  assert.match(result.body, /"data":\[4\.0,5\.0\]/);
});

test("clients that never read their responses delay no other client, and unread responses are released when they disconnect", async () => {
  const buffered = holdings();
  const executedBefore = await executedCount("direct");
  {
    using wires = new Wires();
    const body = faultyRequest("echo", { value: Array.from({ length: 400_000 }, () => 7) });
    for (let i = 0; i < 32; i++) {
      const wire = await Wire.open(port);
      wire.socket.pause();
      wires.list.push(wire);
      wire.send(head(body.length) + body);
    }
    await assertEchoes(port, "direct");
    await until(
      "the model has responded to all of them",
      async () => (await executedCount("direct")) >= executedBefore + 32,
    );
  }
  await assertNothingHeld(buffered);
});

test("a client that pipelines without end is disconnected, and others get their responses", async () => {
  using wire = await Wire.open(port);
  const body = faultyRequest("echo");
  wire.send((head(body.length) + body).repeat(2000));
  await assertEchoes(port, "direct");
  let statuses = 0;
  for (let reply = await wire.reply(); reply !== null; reply = await wire.reply()) {
    statuses += 1;
    assert.ok(reply.status === 200 || reply.status === 503, reply.body);
  }
  assert.ok(statuses < 2000);
});

/** Occupies a model's only instance, and the slot of the request that its worker reads ahead. */
async function occupy(model: string, name: string) {
  const responses = [infer(port, model, faultyRequest(`hold ${name}`, { id: `${name}-holder` }))];
  const marker = join(serving.repository, model, name);
  await pidIn(`${marker}.running`);
  return { answers: responses, release: () => writeFile(`${marker}.go`, "") };
}

/** Number of requests of a model that wait for its instance, as the server counts them. */
async function waitingCount(model: string): Promise<number> {
  const { body } = await sendRequest(serving.server.metricsPort, { path: "/metrics" });
  const line = new RegExp(`^nv_inference_pending_request_count\\{.*model="${model}".*\\} (\\d+)$`, "m").exec(
    body.toString(),
  );
  return Number(line?.[1]);
}

for (const model of ["direct", "batched"] as const) {
  test(`queued requests whose clients disconnect (${model}) are never executed, and later ones are`, async () => {
    const { answers, release } = await occupy(model, "queue");
    const disconnected = new AbortController();
    // The first of them may already have been sent to the worker; it is then not cancelled.
    answers.push(infer(port, model, faultyRequest("echo", { id: "next" })));
    // A response on another connection shows that the previous request has arrived.
    await waitingCount(model);
    const left = Array.from({ length: 20 }, (_, i) =>
      assert.rejects(infer(port, model, faultyRequest("echo", { id: `gone-${i}` }), { signal: disconnected.signal })),
    );
    await until("the requests are queued", async () => (await waitingCount(model)) >= 20);
    answers.push(infer(port, model, faultyRequest("echo", { id: "stayed" })));
    await until("another is queued behind them", async () => (await waitingCount(model)) >= 21);
    disconnected.abort();
    await Promise.all(left);
    await until("the requests have left the queue", async () => (await waitingCount(model)) <= 2);
    await release();
    for (const response of await Promise.all(answers)) assert.equal(response.status, 200, response.body.toString());
    const executed = textOf(await infer(port, model, faultyRequest("executed"))).split(",");
    assert.deepEqual(
      executed.filter((id) => id !== ""),
      ["queue-holder", "next", "stayed"],
    );
  });
}

test("a client that disconnects frees its slot in a bounded queue", async () => {
  const { answers, release } = await occupy("bounded", "bound");
  answers.push(infer(port, "bounded", faultyRequest("echo", { id: "ahead" })));
  await waitingCount("bounded");
  const disconnected = new AbortController();
  const waiting = Array.from({ length: 8 }, () =>
    infer(port, "bounded", faultyRequest("echo"), { signal: disconnected.signal }),
  );
  const refused = await Promise.race(waiting);
  assert.match(errorOf(refused, 503), /Exceeds maximum queue size$/);
  disconnected.abort();
  await Promise.allSettled(waiting);
  await until("the requests have left the queue", async () => (await waitingCount("bounded")) <= 1);
  const acquired = infer(port, "bounded", faultyRequest("echo", { id: "later" }));
  await release();
  assert.equal((await acquired).status, 200);
  for (const response of await Promise.all(answers)) assert.equal(response.status, 200, response.body.toString());
});

test("a client that disconnects during an execution does not end it, and the model responds to the next request", async () => {
  await writeFaultyModel(serving.repository, "single");
  assert.equal((await load(port, "single")).status, 200);
  const disconnected = new AbortController();
  const left = assert.rejects(
    infer(port, "single", faultyRequest("hold run", { id: "left" }), { signal: disconnected.signal }),
  );
  const marker = join(serving.repository, "single", "run");
  const pid = await pidIn(`${marker}.running`);
  disconnected.abort();
  await left;
  await writeFile(`${marker}.go`, "");
  assert.equal(textOf(await infer(port, "single", faultyRequest("pid"))), String(pid));
  assert.equal(outputOf(await infer(port, "single", faultyRequest("executed")), "TEXT")[0], "left,,");
});

test("a model can query whether the client of its request has disconnected", async () => {
  const aborted = new AbortController();
  const left = assert.rejects(infer(port, "batched", faultyRequest("until_left asked"), { signal: aborted.signal }));
  const marker = join(serving.repository, "batched", "asked");
  const pid = await pidIn(`${marker}.running`);
  aborted.abort();
  await left;
  assert.equal(await pidIn(`${marker}.left`), pid);
  await assertEchoes(port, "batched");
});

test("a long request does not delay others while another instance is free", async () => {
  const model = "pair";
  const quick = () => infer(port, model, faultyRequest("echo"));
  for (let round = 0; round < 20; round++) await quick();
  const pending = infer(port, model, faultyRequest("hold pair"));
  // None of them may be sent to the blocked instance, now or later.
  const meanwhile = await Promise.all(Array.from({ length: 20 }, quick));
  const marker = join(serving.repository, model, "pair");
  await pidIn(`${marker}.running`);
  const later = await Promise.all(Array.from({ length: 20 }, quick));
  for (const response of [...meanwhile, ...later]) assert.equal(response.status, 200, response.body.toString());
  await writeFile(`${marker}.go`, "");
  assert.equal((await pending).status, 200);
});
