import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { ensureFramework } from "../environments/index.ts";
import { ScriptServer } from "./script-server.ts";

// The parts of the inference toolkit's contract besides the four functions: headers and statuses of responses, handler
// services, execution parameters, limits, and the containers' paths.

const json = { "Content-Type": "application/json" };
let server: ScriptServer;

before(async () => {
  await ensureFramework("sklearn");
  server = await ScriptServer.open("scikit-learn", { SAGEMAKER_MAX_PAYLOAD_IN_MB: "1" });
});
after(() => server[Symbol.asyncDispose]());

async function loaded(on: ScriptServer, id: string, files: Readonly<Record<string, string | Buffer>>): Promise<void> {
  const reply = await on.load(id, files);
  assert.equal(reply.status, 200, reply.body);
}

test("a script's context sets headers and status of responses and errors; headers that control the transfer are ignored", async () => {
  const script = `
def model_fn(d): return None
def transform_fn(m, data, ct, accept, context):
    context.set_response_header(0, "X-Amzn-SageMaker-Custom-Attributes", "seen=%s" % context.get_request_header(0, "Content-Type"))
    context.get_response_headers(0)["X-Own"] = "a\\r\\nX-Evil: 1"
    context.set_response_header(0, "Content-Length", "1")
    context.set_response_header(0, "X-Number", 7)
    if data == "raise": raise ValueError("raised")
    context.set_response_status(code=207, phrase="some")
    return data
`;
  await loaded(server, "headers", { "code/inference.py": script });
  const { status, body, headers } = await server.invoke("headers", "[1, 2]", json);
  assert.deepEqual([status, body], [207, "[1, 2]"]);
  assert.equal(headers["x-amzn-sagemaker-custom-attributes"], "seen=application/json");
  assert.deepEqual([headers["x-own"], headers["x-evil"], headers["x-number"]], ["a  X-Evil: 1", undefined, "7"]);
  const raised = await server.invoke("headers", "raise", json);
  assert.deepEqual([raised.status, raised.headers["x-number"]], [500, "7"]);
  assert.equal((await server.invoke("headers", "3", json)).headers["x-own"], "a  X-Evil: 1");
});

test("headers apply to one response only, and an invalid header is an error of that request only", async () => {
  const script = `
def model_fn(d): return None
class Silent:
    def __str__(self): raise KeyError("x")
def transform_fn(m, data, ct, accept, context):
    said = {"none": {}, "name": {"a b": "1"}, "many": {"x%d" % i: "" for i in range(65)}, "long": {"x": "y" * 9000}, "object": {"x": Silent()}}
    context.get_response_headers(0).update(said.get(data, {"x-once": "1"}))
    return data
`;
  await loaded(server, "wrong", { "code/inference.py": script });
  assert.equal((await server.invoke("wrong", "once", json)).headers["x-once"], "1");
  const next = await server.invoke("wrong", "none", json);
  assert.deepEqual([next.status, next.headers["x-once"]], [200, undefined]);
  for (const [body, why] of [
    ["name", /"a b" is not a valid header name/],
    ["many", /65 headers; up to 64/],
    ["long", /longer than 8192/],
    ["object", /x/],
  ] as const) {
    const refused = await server.invoke("wrong", body, json);
    assert.equal(refused.status, 500, body);
    assert.match(refused.body, why);
  }
  assert.equal((await server.invoke("wrong", "once", json)).body, "once");
});

test("a body larger than SAGEMAKER_MAX_PAYLOAD_IN_MB gets 413, and one of exactly that size is accepted", async () => {
  await loaded(server, "sizes", {
    "code/inference.py": "def model_fn(d): return None\ndef transform_fn(m, d, c, a): return str(len(d))\n",
  });
  assert.equal((await server.invoke("sizes", Buffer.alloc(2 ** 20, 49), json)).body, String(2 ** 20));
  assert.equal((await server.invoke("sizes", Buffer.alloc(2 ** 20 + 1, 49), json)).status, 413);
});

test("a multi-model container has no /execution-parameters", async () => {
  assert.equal((await server.call("GET", "/execution-parameters")).status, 404);
});

test("for a script /opt/ml/model is its own read-only archive, and other archives are not visible", async () => {
  const script = `
import json, os
def model_fn(model_dir):
    with open("/opt/ml/model/weights.txt") as file:
        return file.read()
def tried(step):
    try:
        return step()
    except OSError as error:
        return type(error).__name__
def transform_fn(model, data, ct, accept):
    return json.dumps([model, sorted(os.listdir("/opt/ml/model")), tried(lambda: open("/opt/ml/model/new", "w")), tried(lambda: os.listdir("/opt/ml/model/../../models")), str(tried(lambda: open("/opt/ml/model/absent")))])
`;
  for (const id of ["1", "2"]) {
    const reached = await server.load(`fixed${id}`, { "code/inference.py": script, "weights.txt": id });
    if (reached.status !== 200) {
      assert.notEqual(process.getuid?.(), 0, reached.body);
      assert.match(reached.body, /use model_dir/);
      return;
    }
    const reply = await server.invoke(`fixed${id}`, "1", json);
    const [model, own, written, others, absent] = JSON.parse(reply.body) as unknown[];
    assert.deepEqual([model, own], [id, ["code", "weights.txt"]]);
    assert.match(String(written), /^(PermissionError|OSError)$/);
    assert.match(String(others), /^(PermissionError|FileNotFoundError)$/);
    assert.equal(absent, "FileNotFoundError");
  }
});

const ownService = `
class Service:
    def initialize(self, context):
        self.directory = context.system_properties["model_dir"]
    def handle(self, data, context):
        body = bytes(data[0].get("body")).decode()
        if body == "raise": raise ValueError("raised")
        if body == "count": return ["a", "b"]
        if body == "kind": return "text"
        if body == "object": return [{"a": [1]}]
        context.set_response_content_type(0, "x/own")
        context.set_response_header(0, "X-Handler", type(data[0]["body"]).__name__)
        context.set_response_status(202, "taken", 0)
        return ["%s %s %d" % (body, context.get_request_header(0, "Accept"), self.directory == context.system_properties["model_dir"])]
`;

test("a service named by SAGEMAKER_HANDLER gets the requests, with multi-model-server's errors and statuses", async () => {
  await using server = await ScriptServer.open("scikit-learn", { SAGEMAKER_HANDLER: "/home/me/own_service.py:handle" });
  await loaded(server, "service", { "code/own_service.py": ownService });
  const reply = await server.invoke("service", "hi", { ...json, Accept: "c/d" });
  assert.deepEqual([reply.status, reply.contentType, reply.body], [202, "x/own", "hi c/d 1"]);
  assert.equal(reply.headers["x-handler"], "bytearray");
  assert.equal((await server.invoke("service", "object", json)).body, '{"a": [1]}');
  for (const [body, message] of [
    ["raise", "Prediction failed"],
    ["count", "number of batch response mismatched"],
    ["kind", "Invalid model predict output"],
  ]) {
    const refused = await server.invoke("service", body!, json);
    assert.equal(refused.status, 503);
    assert.deepEqual(JSON.parse(refused.body), { code: 503, type: "InternalServerException", message });
  }
  const function_ = "def handle(data, context):\n    return None if data is None else [str(len(data))]\n";
  await loaded(server, "function", { "code/own_service.py": function_ });
  assert.equal((await server.invoke("function", "x", json)).body, "1");
  const two = await server.load("two", { "code/own_service.py": "class A: pass\nclass B: pass\n" });
  assert.match(two.body, /Expected only one class in custom service code/);
  assert.match((await server.load("none", { "code/inference.py": "" })).body, /No module named 'own_service'/);
});

test("a SAGEMAKER_HANDLER service around the toolkit's Transformer serves a script with its own default functions", async () => {
  const defaults = `
from sagemaker_inference.default_inference_handler import DefaultInferenceHandler
class Handler(DefaultInferenceHandler):
    def default_model_fn(self, model_dir, context=None): return 3
    def default_predict_fn(self, data, model, context=None): return data * model
`;
  const service = `
from sagemaker_inference.default_handler_service import DefaultHandlerService
from sagemaker_inference.transformer import Transformer
from defaults import Handler
class HandlerService(DefaultHandlerService):
    def __init__(self): super().__init__(transformer=Transformer(default_inference_handler=Handler()))
`;
  await using server = await ScriptServer.open("scikit-learn", { SAGEMAKER_HANDLER: "own_handler" });
  const files = {
    "own_handler.py": service,
    "defaults.py": defaults,
    "code/inference.py": "def input_fn(d, ct): return int(d)\n",
  };
  await loaded(server, "around", files);
  const reply = await server.invoke("around", "14", json);
  assert.deepEqual([reply.status, reply.contentType, reply.body], [200, "application/json", "42"]);
  const wrong = await server.invoke("around", "x", json);
  assert.deepEqual([wrong.status, wrong.body.startsWith("invalid literal for int()")], [500, true], wrong.body);
});

test("execution_parameters_fn returns the settings of transform jobs, and invocations work as before", async () => {
  const script = `
import json
from sagemaker_containers.beta.framework import worker
def model_fn(d): return None
def transform_fn(m, d, c, a): return d
def execution_parameters_fn():
    return worker.Response(json.dumps({"MaxConcurrentTransforms": 3, "BatchStrategy": "MULTI_RECORD", "MaxPayloadInMB": 2}), mimetype="application/json")
`;
  await using one = await ScriptServer.open(
    "scikit-learn",
    { SAGEMAKER_MULTI_MODEL: "false" },
    { "code/inference.py": script },
  );
  const { status, contentType, body } = await one.call("GET", "/execution-parameters");
  assert.deepEqual([status, contentType], [200, "application/json"]);
  assert.deepEqual(JSON.parse(body), { MaxConcurrentTransforms: 3, BatchStrategy: "MULTI_RECORD", MaxPayloadInMB: 2 });
  assert.equal((await one.call("POST", "/invocations", "[1]", json)).body, "[1]");
  assert.equal((await one.call("POST", "/execution-parameters")).status, 405);
});

test("every name of sagemaker_containers.beta.framework can be imported, and calling those for training raises an error", async () => {
  const script = `
import json
from sagemaker_containers.beta.framework import (
    content_types, encoders, entry_point, env, errors, files, functions, logging, mapping, modules, mpi, params, process, runner,
    server, trainer, training_env, transformer, worker)
import sagemaker_containers.beta.framework.server
def model_fn(d): return d == env.model_dir == env.ServingEnv()["model_dir"]
def refusal(call):
    try:
        call()
    except NotImplementedError as error:
        return str(error)
def transform_fn(model, data, content_type, accept):
    rows = encoders.decode(data, content_types.CSV)
    return worker.Response(json.dumps([
        model, rows.tolist(), str(rows.dtype), encoders.encode(rows, "text/csv"), encoders.decode("a,1", "text/csv").tolist(),
        functions.matching_args(lambda a: a, {"a": 1, "b": 2}), mapping.to_env_vars({"x": [1]}), mapping.to_cmd_args({"ab": None, "c": 2}),
        modules.exists("json"), [type(each).__name__ for each in (params.USER_PROGRAM_ENV, logging.get_logger())],
        [refusal(call) for call in (training_env, lambda: modules.import_module("s3://a/b"), lambda: transformer.Transformer(model_fn=model_fn),
            server.start, trainer.train, lambda: process.create("ls", errors.ClientError))]]), mimetype=accept)
`;
  await loaded(server, "containers", { "code/inference.py": script });
  const { status, body } = await server.invoke("containers", "1,2\n3,4.5\n", { "Content-Type": "text/csv" });
  assert.equal(status, 200, body);
  const found = JSON.parse(body) as unknown[];
  const refusals = found.pop() as string[];
  assert.deepEqual(found, [
    true,
    [
      [1, 2],
      [3, 4.5],
    ],
    "float64",
    "1.0,2.0\n3.0,4.5\n",
    ["a", "1"],
    { a: 1 },
    { SM_X: "[1]" },
    ["--ab", "", "-c", "2"],
    true,
    ["str", "Logger"],
  ]);
  const names = ["training_env", "modules.import_module", "transformer.Transformer"];
  for (const [at, name] of [...names, "server.start", "trainer.train", "process.create"].entries())
    assert.match(refusals[at] ?? "", new RegExp(`^sagemaker_containers\\.beta\\.framework\\.${name} is not available`));
});

test("a script may return a Flask response, as in SageMaker's containers", async () => {
  const script = `
import flask
def model_fn(d): return None
def transform_fn(m, data, content_type, accept): return flask.Response(response="got " + data, mimetype="text/csv", status=201)
`;
  await loaded(server, "flask", { "code/inference.py": script });
  const { status, contentType, body } = await server.invoke("flask", "1", json);
  assert.deepEqual([status, contentType, body], [201, "text/csv", "got 1"]);
});

test("libraries in an archive's shared_libs are loaded from there, although a generated script copies them to /lib", async () => {
  const script = `
import os, shutil
from pathlib import Path
def model_fn(model_dir): return shutil.copytree(Path(model_dir + "/shared_libs"), "/lib", dirs_exist_ok=True)
def transform_fn(model, data, content_type, accept):
    with open("/proc/self/maps") as maps: own = any("shared_libs/libown.so" in line for line in maps)
    return "%s %s %s" % (model, own, os.path.exists("/lib/libown.so"))
`;
  const { python } = await ensureFramework("sklearn");
  const { stdout } = await promisify(execFile)(python, [
    "-c",
    "import numpy._core._multiarray_umath as m; print(m.__file__)",
  ]);
  const library = await readFile(stdout.trim());
  await loaded(server, "libraries", { "code/inference.py": script, "shared_libs/libown.so": library });
  assert.equal((await server.invoke("libraries", "1", json)).body, "/lib True False");
  const broken = { "code/inference.py": script, "shared_libs/libown.so": library.subarray(0, 200) };
  assert.match((await server.load("damaged", broken)).body, /shared_libs\/libown\.so: /);
});

test("scripts and pickles that import sklearn.externals.joblib get joblib", async () => {
  const script = `
import os
from sklearn.externals import joblib
import joblib as present
import sklearn.externals.joblib.numpy_pickle as former
def model_fn(model_dir):
    path = os.path.join("/tmp", "galatea-legacy-%d" % os.getpid())
    joblib.dump([1.5], path)
    try:
        model = joblib.load(path)
    finally:
        os.unlink(path)
    assert joblib is present and former is present.numpy_pickle, "two joblibs"
    return model
def transform_fn(model, data, content_type, accept): return str(model)
`;
  await loaded(server, "legacy", { "code/inference.py": script });
  assert.equal((await server.invoke("legacy", "1", json)).body, "[1.5]");
});
