import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { ScriptServer } from "./script-server.ts";
import { ServingArchives } from "./serving-fixture.ts";

const json = { "Content-Type": "application/json" };
const rows = '{"instances": [[1, 2, 3]]}';
let archives: ServingArchives;
let server: ScriptServer;

before(async () => {
  archives = await ServingArchives.make();
  server = await ScriptServer.open("tensorflow-serving", { SAGEMAKER_TFS_WAIT_TIME_SECONDS: "17" });
});
after(async () => {
  await server[Symbol.asyncDispose]();
  await archives[Symbol.asyncDispose]();
});

/** Loads the archive `other` with a script. The latest version of its model returns `x / 10 + 2`. */
async function loadScript(id: string, script: string, more: Readonly<Record<string, string>> = {}): Promise<void> {
  const files = { ...(await archives.files("other")), "code/inference.py": script, ...more };
  const loaded = await server.load(id, files);
  assert.equal(loaded.status, 200, loaded.body);
}

test("input_handler converts requests and output_handler responses, and both receive the request's context", async () => {
  const script = `
import json
from words import PREFIX
def input_handler(data, context):
    global seen
    seen = context
    text = data.read().decode("utf-8")
    return json.dumps({"instances": [[float(one) for one in text.split(";")]]})
def output_handler(response, context):
    assert context is seen
    names = [name for name in context._fields if name != "rest_uri"]
    said = {name: getattr(context, name) for name in names + ["timeout"]}
    return json.dumps([PREFIX, response.status_code, response.json(), response.headers["content-type"], said]), "a/own"
`;
  await loadScript("pair", script, { "code/lib/words.py": "PREFIX = 'from lib'\n" });
  const headers = {
    "Content-Type": "text/x-semicolons",
    "X-Amzn-SageMaker-Custom-Attributes": "tfs-model-version=1,tfs-custom=y",
  };
  const reply = await server.invoke("pair", "1;2;3", headers);
  assert.deepEqual([reply.status, reply.contentType], [200, "a/own"], reply.body);
  const context = {
    model_name: "pair",
    model_version: "1",
    method: null,
    grpc_port: null,
    channel: null,
    custom_attributes: "tfs-model-version=1,tfs-custom=y",
    request_content_type: "text/x-semicolons",
    accept_header: "application/json",
    content_length: 5,
    timeout: 17,
  };
  const result = { predictions: [[2.5, 3, 3.5]] };
  assert.deepEqual(JSON.parse(reply.body), ["from lib", 200, result, "application/json", context]);
});

test("output_handler receives the model's error and status, and an exception of a handler is a 500 with its message", async () => {
  const script = `
def input_handler(data, context):
    body = data.read()
    if body == b"raise":
        raise KeyError("a key")
    return body if body != b"nothing" else None
def output_handler(response, context):
    if response.status_code == 404:
        raise ValueError(response.content.decode("utf-8"))
    return response.content, None
`;
  await loadScript("errors", script);
  const missing = await server.invoke("errors", rows, {
    ...json,
    "X-Amzn-SageMaker-Custom-Attributes": "tfs-model-version=9",
  });
  assert.equal(missing.status, 500);
  const inner = '{\n    "error": "Servable not found for request: Specific(errors, 9)"\n}';
  assert.deepEqual(JSON.parse(missing.body), { error: inner });
  const wrong = await server.invoke("errors", "{}", json);
  assert.deepEqual([wrong.status, JSON.parse(wrong.body)], [200, { error: "Missing 'inputs' or 'instances' key" }]);
  const empty = await server.invoke("errors", "nothing", json);
  assert.deepEqual(JSON.parse(empty.body), { error: "JSON Parse error: The document is empty" });
  const raised = await server.invoke("errors", "raise", json);
  assert.deepEqual([raised.status, JSON.parse(raised.body)], [500, { error: "'a key'" }]);
  await server.logged("in input_handler");
});

test("a handler can call the models at context.rest_uri repeatedly, and query versions and signatures", async () => {
  const script = `
import json, requests
def handler(data, context):
    asked = json.loads(data.read())
    session = requests.Session()
    base = context.rest_uri.rsplit(":", 1)[0]
    first = session.post(context.rest_uri, data=json.dumps(asked)).json()["predictions"]
    again = session.post(base + "/versions/1:predict", json={"instances": first})
    status = requests.get(base).json()
    metadata = requests.get(base + "/versions/2/metadata").json()
    wrong = requests.post(base + "/versions/7:predict", json=asked)
    lost = requests.post(base + "/predict", json=asked)
    return json.dumps({
        "again": again.json(), "type": again.headers["content-type"], "versions": [one["version"] for one in status["model_version_status"]],
        "inputs": list(metadata["metadata"]["signature_def"]["signature_def"]["serving_default"]["inputs"]),
        "wrong": [wrong.status_code, wrong.json()], "lost": lost.status_code,
    }), "application/json"
`;
  await loadScript("asks", script);
  const reply = await server.invoke("asks", rows, json);
  assert.equal(reply.status, 200, reply.body + server.log.slice(-3000));
  assert.deepEqual(JSON.parse(reply.body), {
    again: { predictions: [[3.05, 3.1, 3.15]] },
    type: "application/json",
    versions: ["10", "2", "1"],
    inputs: ["x"],
    wrong: [404, { error: "Servable not found for request: Specific(asks, 7)" }],
    lost: 400,
  });
});

test("a script cannot connect to the REST port of another model", async () => {
  const shows =
    "import requests\ndef handler(data, context):\n" +
    "    requests.post(context.rest_uri, data=data).raise_for_status()\n    return context.rest_uri, 'text/plain'\n";
  await loadScript("shows", shows);
  const { body: uri } = await server.invoke("shows", rows, json);
  assert.match(uri, /^http:\/\/localhost:[1-9]\d+\/v1\/models\/shows:predict$/);
  const asks = `
import requests
def handler(data, context):
    try:
        return str(requests.post(data.read().decode(), data='${rows}', timeout=5).status_code), "text/plain"
    except requests.exceptions.ConnectionError:
        return "nobody", "text/plain"
`;
  await loadScript("curious", asks);
  assert.equal((await server.invoke("curious", uri.replace("shows:", "curious:"), json)).body, "nobody");
  assert.equal((await server.invoke("shows", rows, json)).body, uri);
});

test("a script without handlers or with an exception fails its load with the reason, and other models keep responding", async () => {
  const files = await archives.files("table");
  const none = await server.load("none", { ...files, "code/inference.py": "def input_handler(d, c): pass\n" });
  assert.equal(none.status, 400);
  assert.match(none.body, /Handlers are not implemented correctly in user script\./);
  const raises = await server.load("raises", { ...files, "code/inference.py": "raise RuntimeError('no key')\n" });
  assert.match(raises.body, /no key/);
  assert.equal((await server.invoke("shows", rows, json)).status, 200);
});
