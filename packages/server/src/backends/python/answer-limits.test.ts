/** Values that a model passes to pb_utils and that exceed the limits of a frame: the model gets an error, and its worker continues. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { InferenceError } from "@galatea/base";
import { infer, echo, floats, floatsOf, model, only, openFixture, pidOf, request } from "./python-fixture.ts";
import type { PythonFixture } from "./python-fixture.ts";

let fixture: PythonFixture;

before(async () => {
  fixture = await openFixture();
});

after(() => fixture[Symbol.asyncDispose]());

const responded = (parameters: string) =>
  `return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", request.inputs()[0].as_numpy())], parameters=${parameters}) for request in requests]`;
const called = (options: string) =>
  `pb_utils.InferenceRequest(**dict(dict(model_name="other", inputs=[], requested_output_names=["OUT"]), ${options})).exec()`;
const tensors = (count: number) => `[pb_utils.Tensor("A%d" % at, np.zeros(1, np.float32)) for at in range(${count})]`;

const cases: readonly [what: string, body: string, told: RegExp][] = [
  [
    "parameters of 69 MB in the responses of a batch together",
    responded('{"p": "x" * 23_000_000}'),
    /the responses' parameters and small tensors have 69\d{6} bytes; the Python backend accepts at most 67108864/,
  ],
  [
    "too many parameters in the responses of a batch together",
    responded("{str(at): True for at in range(33_334)}"),
    /the responses have 100002 parameters; the Python backend accepts at most 100000/,
  ],
  [
    "too many outputs in the responses of a batch together",
    'return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.zeros(1, np.float32))] * 50_000) for _ in requests]',
    /the responses have 150000 outputs; the Python backend accepts at most 131072/,
  ],
  [
    "a request with parameters of 5 MB for another model",
    called('parameters={"p": "x" * 5_000_000}'),
    /the request's names and parameters have 5\d{6} bytes; the Python backend accepts at most 4194304/,
  ],
  [
    "a request with too many parameters for another model",
    called("parameters={str(at): True for at in range(100_001)}"),
    /the request has 100001 parameters; the Python backend accepts at most 100000/,
  ],
  [
    "a request with too many inputs for another model",
    called(`inputs=${tensors(4097)}`),
    /the request has 4097 inputs; the Python backend accepts at most 4096/,
  ],
  [
    "a request that wants too many outputs of another model",
    called('requested_output_names=["O%d" % at for at in range(4097)]'),
    /the request has 4097 requested outputs; the Python backend accepts at most 4096/,
  ],
  [
    "a configuration of 5 MB for another model",
    'pb_utils.load_model("other", config="x" * 5_000_000)',
    /the configuration and the files' names have 5\d{6} bytes; the Python backend accepts at most 4194304/,
  ],
  [
    "too many files for another model",
    'pb_utils.load_model("other", files={"file:1/%d" % at: b"" for at in range(4097)})',
    /4097 files are given; the Python backend accepts at most 4096/,
  ],
  [
    "files of 70 MB for another model",
    'pb_utils.load_model("other", files={"file:1/a": bytes(70_000_000)})',
    /the configuration and the files have 70\d{6} bytes; the Python backend accepts at most 67108864/,
  ],
];

test("a worker releases the memory of a large batch", async () => {
  const body = `kilobytes = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("RssAnon"))
return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array([kilobytes], np.float32))]) for _ in requests]`;
  await using loaded = await fixture.load("thrifty", model(body));
  const kilobytes = async () => floatsOf((await infer(loaded, [floats("IN", [1])])).outputs[0]!)[0]!;
  const before = await kilobytes();
  const values = Array.from({ length: 1024 }, () => 1);
  const batch = Array.from({ length: 12_000 }, () => request([floats("IN", values)]));
  const { outcomes } = await only(loaded).execute(batch);
  assert.ok(outcomes.every((outcome) => "outputs" in outcome));
  const grown = (await kilobytes()) - before;
  assert.ok(grown < 24_000, `${grown} kB`);
});

for (const [what, body, pattern] of cases) {
  test(`${what}: the batch fails, and the worker survives`, async () => {
    const first = `if requests[0].inputs()[0].as_numpy()[0] == 0: ${echo}\n`;
    await using loaded = await fixture.load("generous", model(first + body));
    const pid = pidOf(loaded);
    const batch = [1, 1, 1].map((value) => request([floats("IN", [value])]));
    const { outcomes } = await only(loaded).execute(batch);
    for (const outcome of outcomes) {
      assert.ok(outcome instanceof InferenceError, "it has failed");
      assert.match(outcome.message, pattern);
    }
    assert.deepEqual(floatsOf((await infer(loaded, [floats("IN", [0])])).outputs[0]!), [0]);
    assert.equal(pidOf(loaded), pid);
    assert.equal(fixture.arena.usedBytes, 0);
  });
}

test("response parameters that cannot be sent are rejected with Triton's errors", async () => {
  const refusals: readonly [given: string, told: RegExp][] = [
    [
      "{'a': 1.5}",
      /TritonModelException: Expect parameters values to have type bool\/int\/str, found type <class 'float'>/,
    ],
    ["{1: 1}", /TritonModelException: Expect parameters keys to have type str, found type <class 'int'>/],
    ["[1]", /TritonModelException: Expect parameters to be a dict, got <class 'list'>/],
  ];
  for (const [input, pattern] of refusals) {
    await using loaded = await fixture.load(
      "refused",
      model(`return [pb_utils.InferenceResponse([], parameters=${input})]`),
    );
    await assert.rejects(infer(loaded, [floats("IN", [1])]), { code: "INTERNAL", message: pattern });
  }
});
