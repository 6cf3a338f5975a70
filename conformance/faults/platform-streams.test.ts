/** InvokeEndpoint of a model that responds with events: the platform's response, and the ends of such calls. */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { PutObjectCommand } from "@aws-sdk/client-s3";
import { InvokeEndpointCommand } from "@aws-sdk/client-sagemaker-runtime";
import { bucket, createEndpoint, endpointIs, Platform, errorOfInvocation } from "./platform.ts";
import { inThread, streamingConfig, streamingProgram } from "./streaming-model.ts";
import { tarball } from "./tarball.ts";
import { until } from "./until.ts";

const name = "streaming";
let platform: Platform;

before(async () => {
  platform = await Platform.open();
  const Body = tarball([
    { path: "streaming/config.pbtxt", body: streamingConfig },
    { path: "streaming/1/model.py", body: await readFile(streamingProgram) },
  ]);
  await platform.s3.send(new PutObjectCommand({ Bucket: bucket, Key: "streaming.tar.gz", Body }));
  await createEndpoint(platform, { name, modelDataUrl: `s3://${bucket}/streaming.tar.gz` });
  await endpointIs(platform, name, "InService");
});
after(() => platform[Symbol.asyncDispose]());

function invoke(code: string | readonly string[], signal?: AbortSignal) {
  const data = [typeof code === "string" ? code : code.join("\n")];
  const Body = JSON.stringify({ inputs: [{ name: "CODE", datatype: "BYTES", shape: [1], data }] });
  const command = new InvokeEndpointCommand({ EndpointName: name, ContentType: "application/json", Body });
  return platform.runtime.send(command, signal === undefined ? {} : { abortSignal: signal });
}

const dataOf = (event: string) =>
  (JSON.parse(event.slice("data: ".length)) as { outputs: [{ data: [string] }] }).outputs[0].data[0];

/** Resolves with a value that the model reports to another client. */
async function evaluate(expression: string): Promise<string> {
  const { Body } = await invoke(`sender.send(answer(${expression}), FINAL)`);
  return dataOf(Body.transformToString().trimEnd());
}

/** A thread that sends responses until the request is cancelled. */
const endless = (name: string, values: number) =>
  inThread(
    `kept['${name}'] = 'begun'`,
    `while not sender.is_cancelled(): sender.send(large(1, ${values})); time.sleep(0.001)`,
    "sender.send(flags=FINAL)",
    `kept['${name}'] = 'told'`,
  );
const isReported = (kept: string) =>
  until("the model is notified", async () => (await evaluate(`model.kept['${kept}']`)) === "told");

test("the response contains all events, with the container's content type", async () => {
  const reply = await invoke(["for i in range(3): sender.send(answer(i))", "sender.send(flags=FINAL)"]);
  assert.equal(reply.ContentType, "text/event-stream; charset=utf-8");
  const events = reply.Body.transformToString().split("\n\n").slice(0, -1);
  assert.deepEqual(events.map(dataOf), ["0", "1", "2"]);
});

test("an error before the first response is a ModelError with the container's status, a later one is an event", async () => {
  const first = await errorOfInvocation(
    invoke("sender.send(pb_utils.InferenceResponse(error=pb_utils.TritonError('no')), FINAL)"),
  );
  assert.deepEqual([first.name, first.status], ["ModelError", 424]);
  assert.match(first.message, /^Received server error \(500\) from primary with message "\{"error":"no"\}"\. /);
  const reply = await invoke(["sender.send(answer(1))", "raise ValueError('no')"]);
  assert.match(
    reply.Body.transformToString(),
    /^data: \{"model_name".*\n\ndata: \{"error":"Failed to process .*ValueError: no/,
  );
});

test("the model's environment selects the kind of invocation; an invalid kind fails the endpoint", async () => {
  const modelDataUrl = `s3://${bucket}/streaming.tar.gz`;
  const typed = (inferenceType: string) => ({ SAGEMAKER_TRITON_INFERENCE_TYPE: inferenceType });
  await createEndpoint(platform, { name: "flat", modelDataUrl, environment: typed("generate_stream") });
  await createEndpoint(platform, { name: "wrong", modelDataUrl, environment: typed("stream") });
  await endpointIs(platform, "flat", "InService");
  const Body = JSON.stringify({ CODE: "sender.send(answer(1)); sender.send(answer(2), FINAL)" });
  const reply = await platform.runtime.send(new InvokeEndpointCommand({ EndpointName: "flat", Body }));
  const event = (value: number) => `data: {"OUT":"${value}","model_name":"streaming","model_version":"1"}\n\n`;
  assert.equal(reply.Body.transformToString(), event(1) + event(2));
  const pattern = /ERROR: Invalid SAGEMAKER_TRITON_INFERENCE_TYPE 'stream'/;
  assert.match(await endpointIs(platform, "wrong", "Failed"), pattern);
});

test("responses over the limit of an invocation are rejected, and the model is notified of the cancellation", async () => {
  const { status, message } = await errorOfInvocation(invoke(endless("long", 4096)));
  assert.deepEqual([status, message], [413, "HTTP content length exceeded 6291456 bytes."]);
  await isReported("long");
});

test("the model is notified of a client that disconnects while responses are collected", async () => {
  const disconnect = new AbortController();
  const call = errorOfInvocation(invoke(endless("gone", 1), disconnect.signal));
  await until("the model has started", async () => (await evaluate("model.kept.get('gone', '')")) === "begun");
  disconnect.abort();
  assert.equal((await call).name, "AbortError");
  await isReported("gone");
});

test("a worker that dies between responses ends the stream with an error event", async () => {
  const reply = await invoke(["sender.send(answer(1))", "time.sleep(0.1)", "os.kill(os.getpid(), 9)"]);
  const events = reply.Body.transformToString().split("\n\n").slice(0, -1);
  assert.equal(events.length, 2);
  assert.match(events[1]!, /^data: \{"error":"Stub process 'streaming_0_0' is not healthy\./);
  assert.equal(await evaluate("'well'"), "well");
});
