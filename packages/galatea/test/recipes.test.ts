import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { ByteBudget, silentLogger, systemClock } from "@galatea/base";
import { serveServices } from "@galatea/aws/services/service-fixtures.ts";
import { ModelChecks } from "@galatea/server/engine";
import type { Listener } from "@galatea/server/protocols";
import { validateRepository } from "@galatea/server/repository";
import { dataDirectories } from "../src/data-directory/index.ts";
import { backendRows } from "../src/app/serving/backend-rows.ts";
import { lazyBackend } from "../src/app/serving/lazy-backend.ts";
import { openListeners } from "../src/app/serving/serve-listeners.ts";
import { createServerMetrics } from "../src/app/serving/server-metrics.ts";
import { createServingEngine } from "../src/app/serving/serving-engine.ts";
import { command } from "../src/app/commands.ts";
import { commandHelp, programHelp } from "../src/cli/help.ts";
import { integerFlag } from "../src/options/flag.ts";
import { parseFlags, serveFlags, serveOptions } from "../src/options/index.ts";
import { parcelsService } from "./recipes/parcels/index.ts";

// Each test follows a recipe of CONTRIBUTING: a folder, and a row. Nothing else names them.

/** Adds a flag. */
const flags = {
  ...serveFlags,
  "repeat-times": integerFlag({ unit: "times", default: 2, min: 1, max: 8, about: "how often `repeat` repeats" }),
};

/** Adds a backend, which has an option of its own. */
const rows = (times: number) => [
  ...backendRows,
  () =>
    lazyBackend({
      name: "repeat",
      open: async () => new (await import("./recipes/repeat/index.ts")).RepeatBackend(times),
    }),
];

async function repository(t: TestContext): Promise<{ readonly models: string; readonly data: string }> {
  const root = await mkdtemp(join(tmpdir(), "recipes-"));
  t.after(() => rm(root, { recursive: true }));
  await mkdir(join(root, "models/parrot/1"), { recursive: true });
  const tensor = (name: string) => `{ name: "${name}" data_type: TYPE_INT32 dims: -1 }`;
  const config = `backend: "repeat" input ${tensor("X")} output ${tensor("Y")}`;
  await writeFile(join(root, "models/parrot/config.pbtxt"), config);
  return { models: join(root, "models"), data: join(root, "data") };
}

const noGpus = {
  count: 0,
  budgets: new Map(),
  bytesOf: () => Promise.resolve(new Map()),
  watch: null,
  [Symbol.asyncDispose]: () => Promise.resolve(),
};

test("a flag is one row: it is parsed, checked against its limits, in the help, and its option has its name and type", () => {
  const { options } = parseFlags(["--repeat-times=3"], flags);
  const times: number = options.repeatTimes;
  assert.deepEqual([times, parseFlags([], flags).options.repeatTimes], [3, 2]);
  assert.throws(() => parseFlags(["--repeat-times=9"], flags), {
    name: "UsageError",
    message: "Invalid option value. Got 9 for --repeat-times, expected at most 8",
  });
  const command = { name: "serve", summary: "", usage: "", run: () => Promise.resolve(0) };
  assert.match(commandHelp({ ...command, flags }), /^ {2}--repeat-times=TIMES +how often `repeat` repeats \(2\)$/m);
});

test("a command is its function and one row: its flags are parsed, extra arguments are rejected, and the help lists it", async () => {
  const row = command({
    name: "greet",
    summary: "greet somebody",
    usage: "greet NAME [options]",
    flags: { "repeat-times": flags["repeat-times"] },
    positionalsMax: 1,
    run: ({ options, positionals: [name = ""] }) => Promise.resolve(options.repeatTimes + name.length),
  });
  assert.equal(await row.run(["you", "--repeat-times=3"]), 6);
  await assert.rejects(row.run(["you", "and", "me"]), { name: "UsageError", message: "unexpected argument 'and'" });
  assert.match(programHelp([row]), /^ {2}greet +greet somebody$/m);
  assert.match(commandHelp(row), /^Usage: galatea greet NAME \[options\]$/m);
});

test("a backend is its folder and one row: it serves a model, and validate supports it", async (t) => {
  const { models, data } = await repository(t);
  const words = [`--model-repository=${models}`, "--http-port=0", "--allow-grpc=false", "--allow-metrics=false"];
  const parsed = parseFlags(words, flags);
  const options = { ...serveOptions(parsed, {}), httpAddress: "127.0.0.1" };
  const budget = new ByteBudget(2 ** 28);
  const metrics = createServerMetrics({ hostGauges: false, intervalMs: 1000, clock: systemClock, budget, gpus: null });
  const parts = {
    options,
    plan: null,
    log: silentLogger,
    directories: dataDirectories(data, {}),
    gpus: noGpus,
    onConfinement: () => {},
  };
  await using engine = createServingEngine({ ...parts, budget, metrics }, rows(parsed.options.repeatTimes));
  assert.deepEqual(await engine.loadAtStart("all", new AbortController().signal), []);
  const opened: Listener[] = [];
  t.after(() => Promise.all(opened.map((each) => each.close(AbortSignal.abort()))));
  const listening = {
    engine,
    budget,
    options,
    frontEnd: null,
    log: silentLogger,
    metrics,
    unconfined: () => null,
    onPing: () => {},
  };
  await openListeners(listening, opened);
  const body = JSON.stringify({ inputs: [{ name: "X", datatype: "INT32", shape: [2], data: [4, 5] }] });
  const url = `http://127.0.0.1:${opened[0]!.port}/v2/models/parrot/infer`;
  const response = (await (await fetch(url, { method: "POST", body })).json()) as { readonly outputs: unknown };
  assert.deepEqual(response.outputs, [{ name: "Y", datatype: "INT32", shape: [4], data: [4, 5, 4, 5] }]);

  const backends = rows(1).map((row) => row(parts));
  await using checks = new ModelChecks({ backends, backendConfig: () => new Map(), gpuCount: 0, clock: systemClock });
  assert.deepEqual(await validateRepository(models, checks.check, { gpuCount: 0 }), { modelCount: 1, problems: [] });
});

test("an AWS service is its folder and one row, and an action is a row of its service", async () => {
  await using gateway = await serveServices([parcelsService({ centsPerGram: 3 })]);
  const send = async (operation: string, body: string) => {
    const headers = { "x-amz-target": `Parcels_20261122.${operation}`, "content-type": "application/x-amz-json-1.0" };
    return await (await fetch(gateway.client.endpoint, { method: "POST", headers, body })).json();
  };
  assert.deepEqual(await send("SendParcel", '{"Grams":7}'), { Cents: 21 });
  assert.match(JSON.stringify(await send("SendParcel", '{"Grams":0}')), /ValidationException/);
  assert.match(JSON.stringify(await send("LoseParcel", "{}")), /is not implemented by this server/);
});
