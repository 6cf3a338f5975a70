/** Decoupled models behind the container contract: the client disconnects or does not read, and the server stops during streams. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { sendRequest } from "./http-client.ts";
import { openEventStream, type EventStream } from "./event-stream.ts";
import { openServing, type Serving } from "./serving.ts";
import { endlessResponses, inThread, sentWhenStill, writeStreamingModel } from "./streaming-model.ts";
import { until } from "./until.ts";

const bodyOf = (code: string | readonly string[]) =>
  JSON.stringify({
    inputs: [
      { name: "CODE", datatype: "BYTES", shape: [1], data: [typeof code === "string" ? code : code.join("\n")] },
    ],
  });

function textOf(event: string): string {
  const { outputs } = JSON.parse(event.slice("data: ".length)) as { outputs: [{ data: [string] }] };
  return outputs[0].data[0];
}

const open = (serving: Serving, path: string, code: string | readonly string[]): Promise<EventStream> =>
  openEventStream(serving.server.sagemakerPort, path, bodyOf(code));

/** Resolves with a value that the model reports to another client. */
async function evaluate(serving: Serving, path: string, expression: string): Promise<string> {
  const body = bodyOf(`sender.send(answer(${expression}), FINAL)`);
  const response = await sendRequest(serving.server.sagemakerPort, { path, body });
  assert.equal(response.status, 200, response.body.toString());
  return textOf(response.body.toString());
}

function openStreaming(...flags: readonly string[]): Promise<Serving> {
  return openServing({
    flags: ["--model-control-mode=explicit", "--load-model=streaming", ...flags],
    env: { SAGEMAKER_TRITON_DEFAULT_MODEL_NAME: "streaming" },
    write: async ({ repository, mlRoot }) => {
      await writeStreamingModel(repository, "streaming");
      await writeStreamingModel(join(mlRoot, "models", "archive", "model"), "streaming");
    },
  });
}

const paths = ["/invocations", "/models/archive/invoke"];

describe("clients that disconnect or do not read", () => {
  let serving: Serving;
  before(async () => {
    serving = await openStreaming();
    const body = JSON.stringify({ model_name: "archive", url: "/opt/ml/models/archive/model" });
    assert.equal((await sendRequest(serving.server.sagemakerPort, { path: "/models", body })).status, 200);
  });
  after(() => serving[Symbol.asyncDispose]());

  for (const path of paths) {
    test(`${path}: events arrive when their responses are sent`, async () => {
      using stream = await open(serving, path, [
        "model.kept['go'] = go = threading.Event()",
        inThread("sender.send(answer('first'))", "kept['go'].wait(20)", "sender.send(answer('second'), FINAL)"),
      ]);
      assert.deepEqual([stream.status, stream.contentType], [200, "text/event-stream; charset=utf-8"]);
      await until("the first is there", () => stream.events().length === 1);
      assert.equal(stream.end(), null);
      assert.equal(await evaluate(serving, path, "model.kept['go'].set()"), "None");
      await until("the stream has ended", () => stream.end() === "whole");
      assert.deepEqual(stream.events().map(textOf), ["first", "second"]);
    });

    test(`${path}: a client that reads nothing stops the model at a bounded number of responses`, async () => {
      using stream = await open(serving, path, endlessResponses("kept['stopped'] = 'told'"));
      stream.pause();
      const count = await sentWhenStill((expression) => evaluate(serving, path, expression));
      assert.ok(count < 1000, `${count} responses of 16 KiB were produced for a client that reads none`);
      stream.resume();
      await until("the stream continues when the client reads", () => stream.events().length > count + 100);
      stream[Symbol.dispose]();
      await until(
        "the model is notified",
        async () => (await evaluate(serving, path, "model.kept.get('stopped')")) === "told",
      );
    });

    test(`${path}: the model is notified of a client that disconnects during the stream`, async () => {
      using stream = await open(
        serving,
        path,
        inThread(
          "sender.send(answer('one'))",
          "while not sender.is_cancelled(): time.sleep(0.01)",
          "for _ in range(1000): sender.send(answer('more'))",
          "sender.send(answer('last'), FINAL)",
          "kept['went'] = 'on to the end'",
        ),
      );
      await until("there is an event", () => stream.events().length === 1);
      stream[Symbol.dispose]();
      await until(
        "the model went on",
        async () => (await evaluate(serving, path, "model.kept.get('went')")) !== "None",
      );
    });
  }

  test("/models/archive: an unload waits for a stream that ends", async () => {
    using stream = await open(
      serving,
      "/models/archive/invoke",
      inThread("sender.send(answer('one'))", "time.sleep(0.3)", "sender.send(answer('two'), FINAL)"),
    );
    await until("there is an event", () => stream.events().length === 1);
    const removed = await sendRequest(serving.server.sagemakerPort, { method: "DELETE", path: "/models/archive" });
    assert.equal(removed.status, 200);
    await until("the stream has ended", () => stream.end() === "whole");
    assert.deepEqual(stream.events().map(textOf), ["one", "two"]);
  });
});

describe("a stop while a model streams", () => {
  test("waits for a stream that ends", async () => {
    await using serving = await openStreaming();
    using stream = await open(
      serving,
      "/invocations",
      inThread("sender.send(answer('one'))", "time.sleep(0.5)", "sender.send(answer('two'), FINAL)"),
    );
    await until("there is an event", () => stream.events().length === 1);
    assert.equal(await serving.server.stop(), 0);
    await until("the stream has ended", () => stream.end() === "whole");
    assert.deepEqual(stream.events().map(textOf), ["one", "two"]);
  });

  test("ends an endless stream with an error event when its time is over", async () => {
    await using serving = await openStreaming("--exit-timeout-secs=1");
    using stream = await open(serving, "/invocations", "model.kept['sender'] = sender; sender.send(answer('one'))");
    await until("there is an event", () => stream.events().length === 1);
    assert.equal(await serving.server.stop(), 1);
    await until("the stream has ended", () => stream.end() !== null);
    assert.equal(textOf(stream.events()[0]!), "one");
    assert.match(stream.events()[1]!, /^data: \{"error":"model 'streaming' version 1 was ended while it executed: /);
  });
});
