import assert from "node:assert/strict";
import { once } from "node:events";
import { request, type ClientRequest, type IncomingMessage } from "node:http";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { ensureFramework } from "../environments/index.ts";
import { ScriptServer } from "./script-server.ts";

// Scripts whose functions return iterators: the chunks are sent as they are produced.

const json = { "content-type": "application/json" };
let server: ScriptServer;

before(async () => {
  await ensureFramework("sklearn");
  server = await ScriptServer.open("scikit-learn", { SAGEMAKER_MODEL_SERVER_TIMEOUT: "3" });
});
after(() => server[Symbol.asyncDispose]());

async function loaded(id: string, script: string): Promise<void> {
  const reply = await server.load(id, { "code/inference.py": script });
  assert.equal(reply.status, 200, reply.body);
}

function send(id: string, body: string): ClientRequest {
  const socketPath = join(server.directory, "s");
  return request({ socketPath, method: "POST", path: `/models/${id}/invoke`, headers: json }).end(body);
}

/** Resolves with the response when its head has arrived. */
async function begun(id: string, body: string): Promise<IncomingMessage> {
  const [response] = (await once(send(id, body), "response")) as [IncomingMessage];
  return response;
}

async function chunk(response: IncomingMessage): Promise<string> {
  const [segment] = (await once(response, "data")) as [Buffer];
  response.pause();
  return segment.toString();
}

/** Resolves with the received part of a response that breaks off. */
function brokenOff(id: string, body: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const request = send(id, body).once("error", reject);
    request.once("response", (response: IncomingMessage) => {
      let text = "";
      response.on("data", (chunk: Buffer) => (text += String(chunk)));
      response
        .once("error", () => resolve(text))
        .once("end", () => reject(new Error(`it ended without an error: ${text}`)));
    });
  });
}

test("a transform_fn that yields sends its first chunk at once, and a client's disconnect closes the generator", async () => {
  await loaded(
    "yields",
    `
import itertools
ended = []
def model_fn(d): return None
def transform_fn(m, data, ct, accept, context):
    if data == '"ended"':
        yield str(ended), "text/plain"
        return
    context.set_response_header(0, "X-Amzn-SageMaker-Custom-Attributes", "told")
    try:
        for count in itertools.count():
            yield "part %d\\n" % count, "text/event-stream"
    finally:
        ended.append(data)
`,
  );
  const response = await begun("yields", '"endless"');
  assert.match(await chunk(response), /^part 0\n/);
  assert.equal(response.headers["content-type"], "text/event-stream");
  assert.equal(response.headers["x-amzn-sagemaker-custom-attributes"], "told");
  response.destroy();
  const { body, contentType } = await server.invoke("yields", '"ended"', json);
  assert.deepEqual([body, contentType], [`['"endless"']`, "text/plain"]);
});

test("chunks of a predict_fn that returns an iterator go through output_fn; without one, text is sent unchanged", async () => {
  const script = (more: string) => `
streams = True
def model_fn(d): return None
def input_fn(data, ct): return data.split()
def predict_fn(data, model): return map(str.upper, data)
${more}`;
  await loaded("plain", script(""));
  assert.equal((await server.invoke("plain", "a b c", json)).body, "ABC");
  await loaded("formatted", script("def output_fn(part, accept): return '<%s>' % part, 'text/x'\n"));
  const { body, contentType } = await server.invoke("formatted", "a b c", json);
  assert.deepEqual([body, contentType], ["<A><B><C>", "text/x"]);
  await loaded("whole", script("def output_fn(parts, accept):\n    for part in parts: yield '[%s]' % part\n"));
  assert.equal((await server.invoke("whole", "a b", json)).body, "[A][B]");
});

test("an exception before the first chunk gets the toolkit's error response, and a later one breaks the response off", async () => {
  await loaded(
    "raises",
    `
def model_fn(d): return None
def transform_fn(m, data, ct, accept, context):
    if data == '"first"': raise ValueError("at once")
    if data == '"status"': context.set_response_status(code=207)
    yield "one"
    if data == '"later"': raise ValueError("later")
`,
  );
  const first = await server.invoke("raises", '"first"', json);
  assert.equal(first.status, 500);
  assert.match(first.body, /^at once\nTraceback/);
  assert.equal((await server.invoke("raises", '"status"', json)).status, 207);
  assert.equal(await brokenOff("raises", '"later"'), "one");
  assert.equal((await server.invoke("raises", '"fine"', json)).body, "one");
  await server.logged("ValueError: later");
});

test("a response breaks off when its script's process dies, and the next request is served", async () => {
  await loaded(
    "killed",
    `
import os, signal
def model_fn(d): return None
def transform_fn(model, data, content_type, accept):
    def parts():
        yield "first"
        if "end" in data: os.kill(os.getpid(), signal.SIGKILL)
        yield "second"
    return parts(), "text/plain"
`,
  );
  assert.equal(await brokenOff("killed", "end"), "first");
  const complete = await begun("killed", "go on");
  let text = "";
  for await (const chunk of complete) text += String(chunk);
  assert.equal(text, "firstsecond");
});

test("an iterator of a script without `yield` or `stream` is sent in one response, and the log has a warning", async () => {
  const script =
    "def model_fn(d): return None\ndef transform_fn(m, d, c, a): return map(str.upper, d.split()), 'text/x'\n";
  await loaded("neither", script);
  const { body, contentType } = await server.invoke("neither", "a b", json);
  assert.deepEqual([body, contentType], ["AB", "text/x"]);
  await server.logged("the script returned an iterator, which is sent as a whole: with `streams = True` in the script");
});

test("a streaming script may return a single response and can read and set session headers", async () => {
  await loaded(
    "session",
    `
streams = True
def model_fn(d): return None
def transform_fn(m, data, ct, accept, context):
    context.set_response_header(0, "X-Amzn-SageMaker-New-Session-Id", "s1; Expires=2999-01-01T00:00:00Z")
    return str(context.get_request_header(0, "X-Amzn-SageMaker-Session-Id"))
`,
  );
  const reply = await server.invoke("session", "1", { ...json, "x-amzn-sagemaker-session-id": "NEW_SESSION" });
  assert.equal(reply.body, "NEW_SESSION");
  assert.equal(reply.headers["x-amzn-sagemaker-new-session-id"], "s1; Expires=2999-01-01T00:00:00Z");
});

test("a stream may exceed the time limit of a call while chunks arrive; a silent one is ended after that limit", async () => {
  await loaded(
    "slow",
    `
import time
def model_fn(d): return None
def transform_fn(m, data, ct, accept):
    for count in range(8 if data == '"goes on"' else 1):
        yield str(count)
        time.sleep(0.5)
    if data == '"hangs"': time.sleep(60)
`,
  );
  assert.equal((await server.invoke("slow", '"goes on"', json)).body, "01234567");
  assert.equal(await brokenOff("slow", '"hangs"'), "0");
});
