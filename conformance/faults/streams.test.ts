/** Streams of decoupled models: the client or the worker ends, the model fails, or the client does not read. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { assertEchoes, load, unload } from "./http-client.ts";
import { openStream } from "./grpc-stream.ts";
import type { Serving } from "./serving.ts";
import { endlessResponses, inThread, leftBy, openStreaming, sentWhenStill } from "./streaming-model.ts";
import { until } from "./until.ts";

let serving: Serving;

before(async () => {
  serving = await openStreaming();
});
after(() => serving[Symbol.asyncDispose]());

const open = () => openStream(serving.server.grpcPort, "streaming");
const left = (name: string) => leftBy(serving.repository, "streaming", name);

/** Resolves with a value that the model reports to another client. */
async function evaluate(expression: string): Promise<string> {
  using stream = open();
  stream.send(`sender.send(answer(${expression}), FINAL)`);
  await until("the model reports", () => stream.results.length > 0);
  assert.match(stream.results[0]!, /, final$/);
  return stream.results[0]!.slice(0, -", final".length);
}
const assertResponses = async () => assert.equal(await evaluate("'well'"), "well");

test("kill -9 of the worker between responses ends every open stream with an error, and the next requests succeed", async () => {
  using first = open();
  using second = open();
  for (const [name, stream] of [
    ["a", first],
    ["b", second],
  ] as const)
    stream.send(
      [`leave('pid-${name}', os.getpid())`, "sender.send(answer('one'))", "model.kept[id(sender)] = sender"].join("\n"),
    );
  await until("both have a response", () => first.results.length + second.results.length === 2);
  process.kill(Number(await left("pid-a")), "SIGKILL");
  await until("both have ended", () => first.results.length + second.results.length === 4);
  for (const stream of [first, second]) {
    assert.equal(stream.results[0], "one");
    assert.match(
      stream.results[1]!,
      /^error: Stub process 'streaming_0_0' is not healthy\. \(signal SIGKILL\), final$/,
    );
    assert.equal(stream.status, null);
  }
  await assertResponses();
});

test("a client that reads nothing stops the model at a bounded number of responses, and affects no other client", async () => {
  using stream = open();
  stream.pause();
  stream.send(endlessResponses("leave('stopped', sent)"));
  const count = await sentWhenStill(evaluate);
  assert.ok(count < 100, `${count} responses of 16 KiB were produced for a client that reads none`);
  await assertEchoes(serving.server.httpPort, "bystander");
  stream.resume();
  await until("the stream continues when the client reads", () => stream.results.length > count + 100);
  stream[Symbol.dispose]();
  await left("stopped");
});

test("the model is notified of a client that disconnects during the stream, and its later responses are dropped", async () => {
  using stream = open();
  stream.send(
    inThread(
      "sender.send(answer('one'))",
      "while not sender.is_cancelled(): time.sleep(0.01)",
      "for _ in range(1000): sender.send(answer('more'))",
      "sender.send(answer('last'), FINAL)",
      "leave('went', 'on to the end')",
    ),
  );
  await until("a response arrived", () => stream.results.length === 1);
  stream[Symbol.dispose]();
  assert.equal(await left("went"), "on to the end");
  await assertResponses();
});

test("an execute that waits for its client to read continues when the client disconnects", async () => {
  {
    using stream = open();
    stream.pause();
    stream.send(
      [
        "leave('begun', 1)",
        "for index in range(100000): sender.send(large(index, 4096))",
        "sender.send(flags=FINAL)",
        "leave('over', 1)",
      ].join("\n"),
    );
    await left("begun");
  }
  await left("over");
  await assertResponses();
});

test("an unload waits for a stream that ends", async () => {
  using stream = open();
  stream.send(inThread("sender.send(answer('one'))", "time.sleep(0.3)", "sender.send(answer('two'), FINAL)"));
  await until("a response arrived", () => stream.results.length === 1);
  await unload(serving.server.httpPort, "streaming");
  await until("the stream has ended", () => stream.results.length === 2);
  assert.deepEqual(stream.results, ["one", "two, final"]);
  await load(serving.server.httpPort, "streaming");
});

test("an unload ends a stream that does not end", async () => {
  using stream = open();
  stream.send("model.kept['sender'] = sender; sender.send(answer('one'))");
  await until("a response arrived", () => stream.results.length === 1);
  await unload(serving.server.httpPort, "streaming");
  await until("the stream has ended", () => stream.results.length === 2);
  assert.match(stream.results[1]!, /^error: model 'streaming' version 1 was ended while it executed: .*, final$/);
  await load(serving.server.httpPort, "streaming");
  await assertResponses();
});

test("many threads respond to many requests of several streams at once, inside and outside of execute", async () => {
  const [threadCount, responseCount, requestCount] = [3, 20, 4];
  const code = (isInside: boolean) =>
    [
      "left = [0]",
      "lock = threading.Lock()",
      "def run(sender=sender, left=left, lock=lock):",
      `  for i in range(${responseCount}):`,
      "    sender.send(large(i, 3000) if i % 3 else answer('small'))",
      "    sender.is_cancelled()",
      "  with lock:",
      "    left[0] += 1",
      `    is_last = left[0] == ${threadCount}`,
      "  if is_last: sender.send(answer('last'), FINAL)",
      `for _ in range(${threadCount - 1}): threading.Thread(target=run, daemon=True).start()`,
      isInside ? "run()" : "threading.Thread(target=run, daemon=True).start()",
    ].join("\n");
  using first = open();
  using second = open();
  for (const stream of [first, second])
    for (let index = 0; index < requestCount; index++) stream.send(code(index % 2 === 0));
  const count = requestCount * (threadCount * responseCount + 1);
  await until("all responses arrived", () => first.results.length === count && second.results.length === count);
  for (const { results: answers } of [first, second]) {
    assert.equal(answers.filter((response) => response === "last, final").length, requestCount);
    assert.ok(!answers.some((response) => response.startsWith("error")));
  }
});

test("a response that is too large for its frame is the model's error, and the next one is sent", async () => {
  using stream = open();
  stream.send(
    [
      "try: sender.send(pb_utils.InferenceResponse([], parameters={'a': 'x' * 5_000_000}))",
      "except pb_utils.TritonModelException as error: sender.send(answer(error), FINAL)",
    ].join("\n"),
  );
  await until("the model is notified", () => stream.results.length === 1);
  assert.match(stream.results[0]!, /^Unable to send response\. Its parameters and small tensors/);
});
