/** Responses of decoupled models over HTTP: the client or the worker ends, the model fails, or the client does not read. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { sendRequest, assertEchoes, load, unload } from "./http-client.ts";
import { openEventStream } from "./event-stream.ts";
import type { Serving } from "./serving.ts";
import { endlessResponses, inThread, leftBy, openStreaming, sentWhenStill } from "./streaming-model.ts";
import { until } from "./until.ts";

let serving: Serving;

before(async () => {
  serving = await openStreaming();
});
after(() => serving[Symbol.asyncDispose]());

const streamPath = "/v2/models/streaming/generate_stream";
const generatePath = "/v2/models/streaming/generate";
const bodyOf = (code: string | readonly string[]) =>
  JSON.stringify({ CODE: typeof code === "string" ? code : code.join("\n") });
const open = (code: string | readonly string[]) => openEventStream(serving.server.httpPort, streamPath, bodyOf(code));
const left = (name: string) => leftBy(serving.repository, "streaming", name);
const textOf = (event: string) => (JSON.parse(event.slice("data: ".length)) as { OUT: string }).OUT;

/** Resolves with a value that the model reports to another client. */
async function evaluate(expression: string): Promise<string> {
  const { status, body } = await sendRequest(serving.server.httpPort, {
    path: generatePath,
    body: bodyOf(`sender.send(answer(${expression}), FINAL)`),
  });
  assert.equal(status, 200, body.toString());
  return (JSON.parse(body.toString()) as { OUT: string }).OUT;
}

test("events arrive when their responses are sent, not when the stream ends", async () => {
  using stream = await open([
    "model.kept['go'] = go = threading.Event()",
    inThread("sender.send(answer('first'))", "kept['go'].wait(20)", "sender.send(answer('second'), FINAL)"),
  ]);
  assert.deepEqual([stream.status, stream.contentType], [200, "text/event-stream; charset=utf-8"]);
  await until("the first is there", () => stream.events().length === 1);
  assert.equal(stream.end(), null);
  assert.equal(await evaluate("model.kept['go'].set()"), "None");
  await until("the stream has ended", () => stream.end() === "whole");
  assert.deepEqual(stream.events().map(textOf), ["first", "second"]);
});

test("a client that reads nothing stops the model at a bounded number of responses, and affects no other client", async () => {
  using stream = await open(endlessResponses("leave('stopped', sent)"));
  stream.pause();
  const count = await sentWhenStill(evaluate);
  // The limit covers what the sockets of both sides buffer, and what the model may send ahead.
  assert.ok(count < 1000, `${count} responses of 16 KiB were produced for a client that reads none`);
  await assertEchoes(serving.server.httpPort, "bystander");
  stream.resume();
  await until("the stream continues when the client reads", () => stream.events().length > count + 100);
  stream[Symbol.dispose]();
  await left("stopped");
});

for (const path of [streamPath, generatePath]) {
  test(`the model is notified of a client of ${path} that disconnects during the stream, and responds to others`, async () => {
    const name = `gone-${path.length}`;
    const code = inThread(
      "sender.send(answer('one'))",
      `leave('begun-${name}', 1)`,
      "while not sender.is_cancelled(): time.sleep(0.01)",
      "for _ in range(1000): sender.send(answer('more'))",
      "sender.send(answer('last'), FINAL)",
      `leave('${name}', 'on to the end')`,
    );
    const disconnect = new AbortController();
    const call = sendRequest(serving.server.httpPort, { path, body: bodyOf(code), signal: disconnect.signal });
    call.catch(() => {});
    await left(`begun-${name}`);
    disconnect.abort();
    await assert.rejects(call);
    assert.equal(await left(name), "on to the end");
    assert.equal(await evaluate("'well'"), "well");
  });
}

test("kill -9 of the worker between events ends the stream with an error event, and the next requests succeed", async () => {
  using stream = await open([
    "leave('pid', os.getpid())",
    "sender.send(answer('one'))",
    "model.kept['sender'] = sender",
  ]);
  await until("the first is there", () => stream.events().length === 1);
  process.kill(Number(await left("pid")), "SIGKILL");
  await until("the stream has ended", () => stream.end() === "whole");
  assert.equal(textOf(stream.events()[0]!), "one");
  assert.match(stream.events()[1]!, /^data: \{"error":"Stub process 'streaming_0_0' is not healthy\./);
  assert.equal(stream.events().length, 2);
  assert.equal(await evaluate("'well'"), "well");
});

test("an unload waits for a finite stream, and ends an endless one", async () => {
  const { httpPort } = serving.server;
  using ending = await open(
    inThread("sender.send(answer('one'))", "time.sleep(0.3)", "sender.send(answer('two'), FINAL)"),
  );
  await until("there is an event", () => ending.events().length === 1);
  assert.equal((await unload(httpPort, "streaming")).status, 200);
  await until("the stream has ended", () => ending.end() === "whole");
  assert.deepEqual(ending.events().map(textOf), ["one", "two"]);
  await load(httpPort, "streaming");
  using endless = await open("model.kept['sender'] = sender; sender.send(answer('one'))");
  await until("there is an event", () => endless.events().length === 1);
  assert.equal((await unload(httpPort, "streaming")).status, 200);
  await until("the stream has ended", () => endless.end() === "whole");
  assert.match(endless.events()[1]!, /^data: \{"error":"model 'streaming' version 1 was ended while it executed: /);
  await load(httpPort, "streaming");
  assert.equal(await evaluate("'well'"), "well");
});

test("many clients stream at once from threads of one model", async () => {
  const [clientCount, responseCount] = [12, 40];
  const code = inThread(`for i in range(${responseCount}): sender.send(answer(i))`, "sender.send(flags=FINAL)");
  const streams = await Promise.all(Array.from({ length: clientCount }, () => open(code)));
  await until("all have ended", () => streams.every((stream) => stream.end() === "whole"));
  const expected = Array.from({ length: responseCount }, (_, index) => String(index));
  for (const stream of streams) assert.deepEqual(stream.events().map(textOf), expected);
});
