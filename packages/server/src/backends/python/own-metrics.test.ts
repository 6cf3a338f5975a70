/** Custom metrics of Python models, with real workers. */
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { InferenceError } from "@galatea/base";
import type { ResponseSink } from "../../inference/index.ts";
import type { LoadedModel } from "../backend.ts";
import { CustomMetricFamilies } from "@galatea/base/metrics";
import type { Arena } from "../../tensor/index.ts";
import { infer, floats, floatsOf, header, oneInOneOut, only, openFixture, request, until } from "./python-fixture.ts";

const limits = { linesMax: 100, textLengthMax: 10_000, writersMax: 100, bytesMax: 1e6, boundsMax: 10 };
const all = new CustomMetricFamilies((name) => name.startsWith("nv_"));
const text = () => [...all.print()].join("");
const cellsIn = (arena: Arena) => (count: number) => {
  const block = arena.allocate(8 * count);
  const cells = new Float64Array(block.bytes.buffer, block.bytes.byteOffset, count).fill(0);
  return { cells, byteOffset: block.byteOffset, [Symbol.dispose]: () => block.release() };
};
const inNamespace = (namespace: string) => openFixture({}, (arena) => all.open(namespace, limits, cellsIn(arena)));
const fixture = await inNamespace("");
after(() => fixture[Symbol.asyncDispose]());

/** A model that runs `body` for each request, with access to a metric family, and returns the number `out`. */
const counting = (body: string, initialize = "pass") => `${header}import os, threading, time
MF = pb_utils.MetricFamily
class TritonPythonModel:
    def initialize(self, args):
        ${initialize.replaceAll("\n", "\n        ")}
    def execute(self, requests):
        out = 0
        given = requests[0].inputs()[0].as_numpy()
        ${body.replaceAll("\n", "\n        ")}
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array([out], np.float32))])]
`;
const asked = async (loaded: LoadedModel, value = 1) =>
  floatsOf((await infer(loaded, [floats("IN", [value])])).outputs[0]!)[0];
const family = (name: string, kind = "COUNTER") => `self.f = MF(name="${name}", description="d", kind=MF.${kind})`;
const metric = (name: string, kind = "COUNTER") => `${family(name, kind)}\nself.m = self.f.Metric(labels={"a": "b"})`;
const twoInstances = oneInOneOut("TYPE_FP32", "instance_group [{ count: 2 kind: KIND_CPU }]");

test("metrics set in initialize and execute are exposed at once, and removed when the model is unloaded", async () => {
  const loaded = await fixture.load(
    "counts",
    counting("self.m.increment(given[0])\nout = self.m.value()", `${metric("own")}\nself.m.increment(2)`),
  );
  assert.equal(text(), '# HELP own d\n# TYPE own counter\nown{a="b"} 2\n');
  assert.equal(await asked(loaded, 3), 5);
  assert.match(text(), /own\{a="b"\} 5\n/);
  await loaded[Symbol.asyncDispose]();
  assert.equal(text(), "");
  assert.equal(fixture.arena.usedBytes, 0);
});

test("all instances of a model, and other models, share a metric; another namespace does not", async () => {
  const source = counting("self.m.increment(1)\nout = self.m.value()", metric("shared"));
  await using two = await fixture.load("two", source, twoInstances);
  await using other = await fixture.load("other", source);
  await using elsewhere = await inNamespace("elsewhere");
  await using theirs = await elsewhere.load("theirs", source);
  await asked(other);
  await Promise.all(two.instances.map((instance) => instance.execute([request([floats("IN", [1])])])));
  assert.equal(await asked(other), 4);
  assert.equal(await asked(theirs), 1);
  assert.match(text(), /^shared\{a="b"\} 4\nshared\{a="b",namespace="elsewhere"\} 1$/m);
});

test("a dead worker's own metrics are removed, and its counts in shared metrics remain", async () => {
  const source = (own: string) =>
    counting(
      "if given[0] < 0: os._exit(3)\nself.m.increment(1)\nself.k.increment(1)",
      `${metric("both")}\nself.own = MF("${own}", "d", MF.COUNTER)\nself.k = self.own.Metric()\nself.k.increment(7)`,
    );
  await using loaded = await fixture.load("dies", source("mortal"));
  await using other = await fixture.load("lives", source("alive"));
  await asked(loaded);
  await asked(other);
  assert.match(text(), /^mortal 8$/m);
  await assert.rejects(asked(loaded, -1), /is not healthy/);
  await until(() => /^mortal 7$/m.test(text()));
  assert.match(text(), /^both\{a="b"\} 2$/m);
  assert.match(text(), /^alive 8$/m);
});

test("a dropped metric family removes all its metrics, whose methods then raise", async () => {
  const loaded = await fixture.load(
    "drops",
    counting(
      `if given[0] == 1: self.m = None
if given[0] == 2: self.m = self.f.Metric(labels={"a": "b"}); out = self.m.value()
if given[0] == 3: self.f = None
if given[0] == 4:
    try: self.m.increment(1)
    except pb_utils.TritonModelException as error: out = str(error).startswith("Failed to increment metric value: Invalid metric operation as the corresponding 'MetricFamily' has been deleted.")
if given[0] == 5: self.f = MF("dropped", "d", MF.GAUGE); self.m = self.f.Metric(); self.m.set(9)`,
      `${metric("dropped")}\nself.m.increment(5)`,
    ),
  );
  await asked(loaded, 1);
  assert.match(text(), /^dropped\{a="b"\} 5$/m);
  assert.equal(await asked(loaded, 2), 5);
  await asked(loaded, 3);
  assert.equal(text(), "");
  assert.equal(await asked(loaded, 4), 1);
  await asked(loaded, 5);
  assert.match(text(), /# TYPE dropped gauge\ndropped 9$/m);
  await loaded[Symbol.asyncDispose]();
});

test("a gauge is the last value set by any instance plus later additions; a histogram is the sum over instances", async () => {
  const source = counting(
    "if given[0] < 10: self.m.increment(given[0])\nelse: self.m.set(given[0])\nself.h.observe(given[0])\nout = self.m.value()",
    `${metric("level", "GAUGE")}\nself.g = MF("took", "d", MF.HISTOGRAM)\nself.h = self.g.Metric(buckets=[2, 20])`,
  );
  await using one = await fixture.load("one", source);
  await using another = await fixture.load("another", source);
  assert.equal(await asked(one, 3), 3);
  assert.equal(await asked(another, 100), 100);
  assert.equal(await asked(one, -5), 95);
  assert.equal(await asked(one, 50), 50);
  assert.equal(await asked(another, 1), 51);
  assert.match(
    text(),
    /took_count 5\ntook_sum 149\ntook_bucket\{le="2"\} 2\ntook_bucket\{le="20"\} 3\ntook_bucket\{le="\+Inf"\} 5$/m,
  );
});

test("a million increments send no frame, and none is lost among threads", async () => {
  await using loaded = await fixture.load(
    "threads",
    counting(
      `def work():
    for _ in range(100_000): self.m.increment(1)
threads = [threading.Thread(target=work) for _ in range(4)]
for one in threads: one.start()
for one in threads: one.join()
out = self.m.value()`,
      metric("threads"),
    ),
  );
  const before = process.cpuUsage();
  assert.equal(await asked(loaded), 400_000);
  const { user, system } = process.cpuUsage(before);
  assert.ok((user + system) / 1000 < 250, `the server worked ${(user + system) / 1000} ms`);
});

test("threads create metrics and read values while the model executes and while it is idle", async () => {
  await using loaded = await fixture.load(
    "background",
    counting(
      "out = self.seen[-1] if self.seen else 0",
      `${family("background")}
self.seen = []
def work():
    for turn in range(20):
        one = self.f.Metric(labels={"turn": str(turn)})
        one.increment(turn)
        self.seen.append(one.value())
        time.sleep(0.001)
threading.Thread(target=work, daemon=True).start()`,
    ),
  );
  while ((await asked(loaded)) !== 19) await new Promise((resolve) => setImmediate(resolve));
  assert.match(text(), /^background\{turn="19"\} 19$/m);
});

test("a decoupled model can use metrics at load, in execute and in threads that respond later", async () => {
  const decoupled = oneInOneOut("TYPE_FP32", "model_transaction_policy { decoupled: true }");
  const body = `${header}import threading
class TritonPythonModel:
    def initialize(self, args):
        MF = pb_utils.MetricFamily
        self.f = MF("answers", "d", MF.COUNTER)
        self.m = self.f.Metric()
    def execute(self, requests):
        for request in requests:
            self.m.increment(self.m.value() + 1)
            threading.Thread(target=self.answer, args=(request.get_response_sender(),)).start()
    def answer(self, sender):
        self.m.increment(1)
        out = self.f.Metric(labels={"t": "1"})
        out.increment(self.m.value())
        sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array([out.value()], np.float32))]), flags=1)
`;
  await using loaded = await fixture.load("decoupled", body, decoupled);
  const responded = () =>
    new Promise<number>((resolve, reject) => {
      const responseSink: ResponseSink = {
        respond(outcome, _isFinal, consumed) {
          consumed();
          if (outcome === null || outcome instanceof InferenceError) reject(outcome ?? new Error("no answer"));
          else resolve(floatsOf(outcome.outputs[0]!)[0]!);
        },
      };
      void only(loaded).execute([request([floats("IN", [1])], { responseSink })]);
    });
  assert.equal(await responded(), 2);
  assert.equal(await responded(), 2 + 6);
  assert.match(text(), /^answers 6\nanswers\{t="1"\} 8$/m);
});

test("metrics over the limit raise in the model that creates them", async () => {
  await using loaded = await fixture.load(
    "toomany",
    counting(
      `for i in range(1000):
    try: self.f.Metric(labels={"i": str(i)})
    except pb_utils.TritonModelException as error:
        assert "limit reached" in str(error), error
        out = i
        break`,
      family("toomany"),
    ),
  );
  const count = await asked(loaded);
  assert.ok(count === limits.linesMax - 1 || count === limits.writersMax - 1, String(count));
  assert.equal(await asked(loaded), count);
});

test("the server's own metric names and a family of another type are rejected", async () => {
  await using one = await fixture.load("first", counting("pass", metric("kind")));
  const told = async (name: string, kind: string) =>
    await fixture.load("second", counting("pass", metric(name, kind))).then(
      () => "loaded",
      (error: Error) => error.message.split("\n")[0],
    );
  const refusal =
    "TritonModelException: Error when creating MetricFamily: Failed to process the request for model 'second_0', message: ";
  assert.equal(await told("kind", "GAUGE"), `${refusal}Family name already exists with different type`);
  assert.equal(
    await told("nv_requests", "COUNTER"),
    `${refusal}Metrics of the name 'nv_requests' are the server's own`,
  );
  assert.equal(await told("a b", "COUNTER"), `${refusal}Invalid metric name`);
  assert.ok(one);
});

test("a process forked by the model cannot change metrics, and its end removes none", async () => {
  await using loaded = await fixture.load(
    "forks",
    counting(
      `child = os.fork()
if child == 0:
    try:
        self.m.increment(100)
        os._exit(1)
    except pb_utils.TritonModelException: pass
    self.f = None
    os._exit(7)
out = os.waitpid(child, 0)[1] >> 8
self.m.increment(1)`,
      metric("forked"),
    ),
  );
  assert.equal(await asked(loaded), 7);
  assert.match(text(), /^forked\{a="b"\} 1$/m);
});

test("metrics work at module level, in auto_complete_config, and in finalize", async () => {
  const source = `${header}
MF = pb_utils.MetricFamily
F = MF("top", "d", MF.COUNTER)
M = F.Metric()
M.increment(1)
class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        M.increment(10)
        return config
    def execute(self, requests): pass
    def finalize(self):
        M.increment(100)
        print("at the end:", M.value(), F.Metric({"at": "end"}).value())
`;
  const loaded = await fixture.load("anywhere", source);
  assert.match(text(), /^top 11$/m);
  await loaded[Symbol.asyncDispose]();
  await until(() => fixture.log.includes("printed: at the end: 111.0 0.0"));
  assert.equal(text(), "");
});
