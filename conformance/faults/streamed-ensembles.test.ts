/** Ensembles with decoupled steps: the client, a step or the server ends during a stream, or the client does not read. */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { after, before, test } from "node:test";
import { assertEchoes, load, unload } from "./http-client.ts";
import { writeFaultyModel } from "./faulty-model.ts";
import { openStream } from "./grpc-stream.ts";
import type { Serving } from "./serving.ts";
import {
  endlessResponses,
  inThread,
  leftBy,
  openStreaming,
  sentWhenStill,
  writeStreamingModel,
} from "./streaming-model.ts";
import { until } from "./until.ts";

const laterConfig = `backend: "python"
input [ { name: "TEXT" data_type: TYPE_STRING dims: [ 1 ] optional: true }, { name: "NUMBERS" data_type: TYPE_INT32 dims: [ -1 ] optional: true } ]
output [ { name: "OUT" data_type: TYPE_STRING dims: [ 1 ] }, { name: "SAME" data_type: TYPE_INT32 dims: [ -1 ] } ]
instance_group { count: 1 kind: KIND_CPU }
`;

type Map = Readonly<Record<string, string>>;
const mapping = (field: string, map: Map) =>
  Object.entries(map)
    .map(([key, value]) => `${field} { key: "${key}" value: "${value}" }`)
    .join(" ");
const step = (model: string, inputs: Map, outputs: Map) =>
  `step { model_name: "${model}" model_version: -1 ${mapping("input_map", inputs)} ${mapping("output_map", outputs)} }`;
const ensembleConfig = (output: string, steps: readonly string[]) => `platform: "ensemble"
input [ { name: "CODE" data_type: TYPE_STRING dims: [ 1 ] } ]
output [ ${output} ]
ensemble_scheduling { ${steps.join(" ")} }
`;
const text = '{ name: "OUT" data_type: TYPE_STRING dims: [ 1 ] }';
const numbers = '{ name: "NUMBERS" data_type: TYPE_INT32 dims: [ -1 ] }';
const streaming = step("streaming", { CODE: "CODE" }, { OUT: "T" });

/** Each ensemble consists of `streaming` and `later`. */
const ensembles: Readonly<Record<string, string>> = {
  piped: ensembleConfig(text, [streaming, step("later", { TEXT: "T" }, { OUT: "OUT" })]),
  piped_large: ensembleConfig(numbers, [
    step("streaming", { CODE: "CODE" }, { LARGE: "N" }),
    step("later", { NUMBERS: "N" }, { SAME: "NUMBERS" }),
  ]),
  piped_nested: ensembleConfig(numbers, [
    step("piped_large", { CODE: "CODE" }, { NUMBERS: "N" }),
    step("later", { NUMBERS: "N" }, { SAME: "NUMBERS" }),
  ]),
  piped_twice: ensembleConfig(numbers, [
    streaming,
    step("second", { CODE: "T" }, { LARGE: "N" }),
    step("later", { NUMBERS: "N" }, { SAME: "NUMBERS" }),
  ]),
};

let serving: Serving;

before(async () => {
  serving = await openStreaming(["second", "later", ...Object.keys(ensembles)], async (repository) => {
    await writeStreamingModel(repository, "second");
    const later = await readFile(fileURLToPath(new URL("models/later.py", import.meta.url)), "utf8");
    await writeFaultyModel(repository, "later", { config: laterConfig, text: later });
    for (const [name, config] of Object.entries(ensembles))
      await writeFaultyModel(repository, name, { config, text: "" });
  });
});
after(() => serving[Symbol.asyncDispose]());

const open = (model = "piped") => openStream(serving.server.grpcPort, model);
const left = (name: string, model = "streaming") => leftBy(serving.repository, model, name);

async function assertResponses(): Promise<void> {
  using stream = open();
  stream.send("sender.send(answer('well'), FINAL)");
  await until("the ensemble responds", () => stream.results.length > 0);
  assert.deepEqual(stream.results, ["WELL, final"]);
}

test("kill -9 of the decoupled step's worker ends the stream, and the next request succeeds", async () => {
  using stream = open();
  stream.send("leave('pid', os.getpid()); sender.send(answer('one')); model.kept['sender'] = sender");
  await until("a response arrived", () => stream.results.length === 1);
  process.kill(Number(await left("pid")), "SIGKILL");
  await until("the stream has ended", () => stream.results.length === 2);
  assert.equal(stream.results[0], "ONE");
  assert.match(
    stream.results[1]!,
    /^error: in ensemble 'piped', Stub process 'streaming_0_0' is not healthy\. \(signal SIGKILL\), final$/,
  );
  await assertResponses();
});

test("kill -9 of a later step's worker ends the stream, and the decoupled model is notified of the cancellation", async () => {
  using stream = open();
  stream.send(
    inThread(
      "sender.send(answer('one'))",
      "time.sleep(0.1)",
      "sender.send(answer('pid'))",
      "while not sender.is_cancelled(): time.sleep(0.01)",
      "for _ in range(100): sender.send(answer('more'))",
      "sender.send(flags=FINAL)",
      "leave('told', 1)",
    ),
  );
  process.kill(Number(await left("pid", "later")), "SIGKILL");
  await until("the stream has ended", () => stream.results.length === 2);
  assert.match(
    stream.results[1]!,
    /^error: in ensemble 'piped', Stub process 'later_0_0' is not healthy\. \(signal SIGKILL\), final$/,
  );
  await left("told");
  await assertResponses();
});

/** Resolves with a value that the decoupled model itself reports to another client. */
async function evaluate(expression: string): Promise<string> {
  using stream = open("streaming");
  stream.send(`sender.send(answer(${expression}), FINAL)`);
  await until("the model reports", () => stream.results.length > 0);
  return stream.results[0]!.replace(/, final$/, "");
}

test("a client that reads nothing stops the first model of an ensemble at a bounded number of responses, and affects no other client", async () => {
  const requests = "for i in range(10): sender.send(large(i, 4096))\\nsender.send(flags=FINAL)";
  for (const [name, response] of [
    ["piped_large", "large(sent, 4096)"],
    ["piped_nested", "large(sent, 4096)"],
    ["piped_twice", `answer('${requests}')`],
  ] as const) {
    using stream = open(name);
    stream.pause();
    stream.send(endlessResponses(`leave('stopped-${name}', sent)`, response));
    const count = await sentWhenStill(evaluate);
    assert.ok(count < 100, `${name}: ${count} responses were produced for a client that reads none`);
    await assertEchoes(serving.server.httpPort, "bystander");
    // Other clients call the same models.
    await assertResponses();
    stream.resume();
    await until("the stream continues when the client reads", () => stream.results.length > count + 100);
    stream[Symbol.dispose]();
    await left(`stopped-${name}`);
    await assertResponses();
  }
});

test("the decoupled model is notified of a client that disconnects during the stream", async () => {
  using stream = open();
  stream.send(
    inThread(
      "sender.send(answer('one'))",
      "while not sender.is_cancelled(): time.sleep(0.01)",
      "for _ in range(100): sender.send(answer('more'))",
      "sender.send(flags=FINAL)",
      "leave('went', 1)",
    ),
  );
  await until("a response arrived", () => stream.results.length === 1);
  stream[Symbol.dispose]();
  await left("went");
  await assertResponses();
});

test("an unload of the ensemble, or of a step, waits for the last response of a finite stream", async () => {
  for (const name of ["piped", "streaming", "later"]) {
    using stream = open();
    stream.send(inThread("sender.send(answer('one'))", "time.sleep(0.3)", "sender.send(answer('wait'), FINAL)"));
    await until("a response arrived", () => stream.results.length === 1);
    await unload(serving.server.httpPort, name);
    await until("the stream has ended", () => stream.results.length === 2);
    assert.deepEqual(stream.results, ["ONE", "WAIT, final"], name);
    await load(serving.server.httpPort, name);
    if (name === "piped") await assertResponses();
    else await load(serving.server.httpPort, "piped");
  }
  await assertResponses();
});

test("an unload ends a stream that does not end", async () => {
  using stream = open();
  stream.send("model.kept['sender'] = sender; sender.send(answer('one'))");
  await until("a response arrived", () => stream.results.length === 1);
  await unload(serving.server.httpPort, "piped");
  await until("the stream has ended", () => stream.results.length === 2);
  assert.match(stream.results[1]!, /^error: model 'piped' version 1 was ended while it executed: .*, final$/);
  await load(serving.server.httpPort, "piped");
  await assertResponses();
});

test("many concurrent streams over one ensemble get all responses", async () => {
  const [streamCount, responseCount] = [20, 30];
  const streams = Array.from({ length: streamCount }, () => open());
  try {
    for (const stream of streams)
      stream.send(
        inThread(`for i in range(${responseCount}): sender.send(answer(i))`, "sender.send(answer('end'), FINAL)"),
      );
    await until("all responses arrived", () =>
      streams.every(({ results: answers }) => answers.length === responseCount + 1),
    );
    for (const { results: answers } of streams)
      assert.deepEqual(answers, [...Array(responseCount).keys(), "END, final"].map(String));
  } finally {
    for (const stream of streams) stream[Symbol.dispose]();
  }
});
