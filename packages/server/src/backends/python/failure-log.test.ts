import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createLogger, systemClock, type LogFields } from "@galatea/base";
import type { ResponseSink } from "../../inference/index.ts";
import { FailureLog } from "./failure-log.ts";
import {
  echo,
  floats,
  model,
  oneInOneOut,
  only,
  openFixture,
  request,
  until,
  type PythonFixture,
} from "./python-fixture.ts";

interface Line {
  readonly message: string;
  readonly fields: LogFields | undefined;
}

const errors: Line[] = [];
const logger = createLogger((level, message, fields) => {
  if (level === "error") errors.push({ message, fields });
});

let fixture: PythonFixture;

before(async () => {
  fixture = await openFixture({ logger });
});

after(() => fixture[Symbol.asyncDispose]());

const about = (model: string, more: LogFields = {}) => ({ model, version: "1", instance: `${model}_0`, ...more });
const asked = (id: string) => request([floats("IN", [1])], { id });

test("an exception is one ERROR line with model, version, instance, request ids and traceback", async () => {
  await using loaded = await fixture.load("raises", model('raise ValueError("bad value")'));
  errors.length = 0;
  await only(loaded).execute([asked("first"), asked(""), asked("third")]);
  const [line] = errors;
  assert.equal(errors.length, 1);
  assert.match(
    line!.message,
    /^Failed to process the request\(s\) for model 'raises_0', message: ValueError: bad value\n\nAt:\n {2}\S+model\.py\(5\): execute\n$/,
  );
  assert.deepEqual(line!.fields, about("raises", { request: "first,third" }));
});

test("an error that the model returns for a request is not logged", async () => {
  const returned = 'return [pb_utils.InferenceResponse(error=pb_utils.TritonError("no")) for r in requests]';
  await using loaded = await fixture.load("returns", model(returned));
  errors.length = 0;
  await only(loaded).execute([asked("")]);
  assert.deepEqual(errors, []);
});

test("an exception after a response was sent is logged, although no client reads it", async () => {
  const body = `sender = requests[0].get_response_sender()
sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("OUT", requests[0].inputs()[0].as_numpy())]), 1)
raise ValueError("after the response")`;
  await using loaded = await fixture.load("sends", model(body));
  errors.length = 0;
  await only(loaded).execute([asked("mine")]);
  assert.deepEqual(
    errors.map(({ fields }) => fields),
    [about("sends", { request: "mine" })],
  );
  assert.match(errors[0]!.message, /ValueError: after the response\n\nAt:/);
});

const decoupled = oneInOneOut("TYPE_FP32", "model_transaction_policy { decoupled: true }");
const sink = (): ResponseSink => ({ respond: (_outcome, _isFinal, consumed) => consumed() });

for (const [kind, keyword] of [
  ["decoupled", ""],
  ["asynchronous decoupled", "async "],
] as const) {
  test(`an exception of an ${kind} model after the final flag is logged`, async () => {
    const name = keyword === "" ? "finals" : "finals_async";
    const body = model(`requests[0].get_response_sender().send(flags=1)\nraise ValueError("after the final flag")`);
    await using loaded = await fixture.load(name, body.replace("def execute", `${keyword}def execute`), decoupled);
    errors.length = 0;
    await only(loaded).execute([{ ...asked("late"), responseSink: sink() }]);
    await until(() => errors.length > 0);
    assert.equal(errors.length, 1);
    assert.match(errors[0]!.message, /^Failed to process .* ValueError: after the final flag\n\nAt:\n.*: execute\n$/s);
    assert.deepEqual(errors[0]!.fields, about(name, { request: "late" }));
  });
}

test("a model that always fails writes a limited number of lines a second, over all its instances", async () => {
  const config = oneInOneOut("TYPE_FP32", "instance_group [{ count: 2 kind: KIND_CPU }]");
  const loaded = await fixture.load("floods", model('raise ValueError("x" * 100000)'), config);
  errors.length = 0;
  await Promise.all(
    loaded.instances.map(async (instance) => {
      for (let count = 0; count < 50; count++) await instance.execute([asked("y".repeat(10_000))]);
    }),
  );
  await loaded[Symbol.asyncDispose]();
  const shown = errors.filter(({ message }) => message.startsWith("Failed to process"));
  const dropped = errors.map(({ message }) =>
    Number(/^\.\.\. (\d+) failed executions not shown/.exec(message)?.[1] ?? 0),
  );
  assert.equal(shown.length + dropped.reduce((sum, one) => sum + one, 0), 100);
  assert.ok(dropped.some((count) => count > 0));
  for (const { message, fields } of shown) {
    assert.ok(message.length <= 16_384);
    assert.equal(String(fields!["request"]).length, 128);
  }
});

test("requests that a line does not name are counted", () => {
  errors.length = 0;
  const log = new FailureLog(systemClock, logger, { model: "m", version: "2" });
  log.report("m_0", () => ({
    message: "why",
    requestIds: Array.from({ length: 10 }, (_, position) => `r${position}`),
  }));
  assert.deepEqual(errors, [
    {
      message: "why",
      fields: { model: "m", version: "2", instance: "m_0", request: "r0,r1,r2,r3,r4,r5,r6,r7 and 2 more" },
    },
  ]);
});

test("a batch whose requests were all cancelled before it began is no failure", async () => {
  const body = `import time\ntime.sleep(0.2)\n${echo}`;
  await using loaded = await fixture.load("waits", model(body));
  errors.length = 0;
  const input = new AbortController();
  const second = { ...asked("second"), signal: input.signal };
  const both = [only(loaded).execute([asked("first")]), only(loaded).execute([second])];
  input.abort();
  only(loaded).abandonRequest(second);
  await Promise.all(both);
  assert.deepEqual(errors, []);
});
