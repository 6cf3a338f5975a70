import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { cacheDirectory, ensureEnvironment, ensureFramework } from "../environments/index.ts";
import { ScriptServer } from "./script-server.ts";

// Each script is served by the real inference toolkit and by our server. Where our server has the defaults of a
// framework's container, the scripts and requests are such that the toolkit's own defaults give equal results.

interface Request {
  readonly body: Buffer;
  readonly headers: Readonly<Record<string, string>>;
}
interface Script {
  readonly name: string;
  readonly files: Readonly<Record<string, string>>;
  readonly requests: readonly Request[];
}
interface Judged {
  readonly error: string | null;
  readonly answers: readonly { readonly status: number; readonly type: string | null; readonly body: string }[];
}

const asked = (body: string | Buffer, type: string | null, accept: string | null = null): Request => ({
  body: Buffer.from(body),
  headers: { ...(type === null ? {} : { "Content-Type": type }), ...(accept === null ? {} : { Accept: accept }) },
});
const script = (name: string, text: string, ...requests: Request[]): Script => ({
  name,
  files: { "code/inference.py": text },
  requests,
});
const model = "def model_fn(model_dir): return 2\n";
const json = "application/json";
/** An array of 2 x 2 doubles in the format of numpy.save. */
const npy = Buffer.concat([
  Buffer.from("\x93NUMPY\x01\x00\x76\x00", "latin1"),
  Buffer.from(`${"{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2), }".padEnd(117)}\n`),
  Buffer.from(new Float64Array([1, 2, 3, 4]).buffer),
]);

const scripts: readonly Script[] = [
  script(
    "the default functions around a predict_fn",
    `${model}def predict_fn(data, model): return (data.astype(float) * model).tolist()\n`,
    asked("[[1, 2], [3, 4]]", json),
    asked("[[1, 2], [3, 4]]", json, "text/csv"),
    asked("1,2\n3,4\n", "text/csv", json),
    asked("1,2\n3,4\n", "text/csv", "*/*"),
    asked(npy, "application/x-npy", json),
    asked(npy, "application/x-npy", "application/x-npy"),
    asked("[[1, 2]]", "application/json; charset=utf-8"),
    asked("[[1, 2]]", "application/x-unknown"),
    asked("[[1, 2]]", json, "application/x-unknown"),
    asked("[[1, 2]", json),
    asked(Buffer.from([0xff, 0xfe]), json),
  ),
  script(
    "only its own functions, with their arguments",
    `${model}def input_fn(data, content_type): return [type(data).__name__, str(data), content_type]\n` +
      "def predict_fn(data, model): return data + [model]\ndef output_fn(prediction, accept): return repr(prediction + [accept]), 'a/b'\n",
    asked("x", json, "c/d, e/f"),
    asked("é", "text/csv"),
    asked("", json),
  ),
  script(
    "transform_fn, and a result that is neither text nor bytes",
    `${model}def transform_fn(model, data, content_type, accept):\n    return {"text": "t", "bytes": b"b", "object": {"a": [1]}, "pair": ("p", "x/y"), "none": None}[data]\n`,
    ...["text", "bytes", "object", "pair", "none"].map((word) => asked(word, json)),
    asked("absent", json),
  ),
  script(
    "functions that take the context",
    "def model_fn(model_dir, context): return context.system_properties['model_dir'] == model_dir\n" +
      "def transform_fn(model, data, content_type, accept, context): return str(model)\n",
    asked("x", json),
  ),
  script("functions with too many parameters", "def model_fn(a, b, c): pass\n"),
  script(
    "statuses that a script chooses",
    "from sagemaker_inference.errors import BaseInferenceToolkitError, GenericInferenceToolkitError\n" +
      `${model}def transform_fn(model, data, content_type, accept):\n` +
      "    if data == 'base': raise BaseInferenceToolkitError(418, 'a teapot', 'I am')\n" +
      "    if data == 'generic': raise GenericInferenceToolkitError(503)\n    raise KeyError('a key')\n",
    ...["base", "generic", "other"].map((word) => asked(word, json)),
  ),
  script(
    "the steps of a load, in their order",
    "said = []\ndef pre_model_fn(d): said.append('pre')\ndef model_fn(d): said.append('model'); return said\n" +
      "def model_warmup_fn(d, m): said.append('warm')\ndef transform_fn(m, data, c, a): return ','.join(m)\n",
    asked("x", json),
  ),
  script("no model_fn", "def predict_fn(d, m): return d\n"),
  script(
    "transform_fn in addition to predict_fn",
    `${model}def transform_fn(m, d, c, a): pass\ndef predict_fn(d, m): pass\n`,
  ),
  script("a model_fn that raises", "def model_fn(d): raise RuntimeError('no weights')\n"),
];

let judged: readonly Judged[];
let server: ScriptServer;

before(async () => {
  const { python } = await ensureEnvironment(cacheDirectory(process.env), "toolkit");
  const program = fileURLToPath(new URL("real_toolkit.py", import.meta.url));
  const running = promisify(execFile)(python, [program], { maxBuffer: 2 ** 26 });
  running.child.stdin?.end(
    JSON.stringify(
      scripts.map(({ files, requests }) => ({
        files,
        requests: requests.map(({ body, headers }) => ({ body: body.toString("base64"), headers })),
      })),
    ),
  );
  judged = JSON.parse((await running).stdout) as Judged[];
  await ensureFramework("sklearn");
  server = await ScriptServer.open("scikit-learn");
});
after(() => server[Symbol.asyncDispose]());

/**
 * Returns the comparable part of a response: of an error the text before its traceback, whose frames differ between
 * servers.
 */
const compared = (status: number, body: Buffer) =>
  status < 400 ? body.toString("latin1") : body.toString().split("\nTraceback")[0];

for (const [index, { name, files, requests }] of scripts.entries())
  test(`a script's results equal those of SageMaker's inference toolkit: ${name}`, async () => {
    const expected = judged[index]!;
    const loaded = await server.load(`s${index}`, files);
    if (expected.error !== null) {
      assert.equal(loaded.status, 400);
      assert.ok(loaded.body.includes(JSON.stringify(expected.error.split("\n")[0]).slice(1, -1)), loaded.body);
      return;
    }
    assert.equal(loaded.status, 200, loaded.body);
    for (const [at, request] of requests.entries()) {
      const { status, type, body } = expected.answers[at]!;
      const reply = await server.invoke(`s${index}`, request.body, request.headers);
      const text = `request ${at}: ${reply.body}`;
      assert.equal(reply.status, status, text);
      assert.equal(compared(status, reply.bytes), compared(status, Buffer.from(body, "base64")), text);
      if (status < 400) assert.equal(reply.contentType, type, text);
    }
  });
