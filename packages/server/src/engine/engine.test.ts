import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { eventually } from "@galatea/base/core/eventually-fixture.ts";
import { systemClock, type InferenceError } from "@galatea/base";
import { releaseResponse } from "../inference/index.ts";
import { chainOf, echoConfig, EngineFixture, failing, requestTo } from "./engine-fixtures.ts";

let bench: EngineFixture;

beforeEach(() => {
  bench = new EngineFixture();
  Object.assign(bench.models, { echo: echoConfig, echo2: echoConfig, chain: chainOf(["echo", "echo2"]) });
});

afterEach(() => bench[Symbol.asyncDispose]());

describe("engine", () => {
  it("loads an ensemble with its steps and hands tensors through it without leaking a block", async () => {
    await bench.load("chain");
    assert.deepEqual(await bench.respond(requestTo("chain", [1, 2, 3])), {
      name: "Y",
      version: "1",
      values: [1, 2, 3],
    });
    assert.equal(bench.backend.arena?.usedBytes, 0);
    assert.deepEqual(
      bench.engine
        .statistics("", "")
        .map((row) => [row.name, row.inferenceCount, row.executionCount])
        .sort((a, b) => String(a[0]).localeCompare(String(b[0]))),
      [
        ["chain", 1, 1],
        ["echo", 1, 1],
        ["echo2", 1, 1],
      ],
    );
  });

  it("counts a request's duration from when it was received, before its body was decoded", async () => {
    await bench.load("chain");
    const receivedNs = systemClock.monotonicNs() - 5e9;
    await bench.respond({ ...requestTo("chain", [1]), receivedNs });
    const spent = new Map(bench.engine.statistics("", "").map(({ name, success }) => [name, success.ns / 1e9]));
    assert.ok(spent.get("chain")! >= 5, "decoding is left out");
    assert.ok(spent.get("echo2")! < 5, "a step was received when it was reached");
  });

  it("does not load a model whose label file is missing", async () => {
    bench.models["echo"] = echoConfig.replace('name: "Y"', 'name: "Y" label_filename: "absent.txt"');
    await assert.rejects(bench.load("echo"), /failed to open label file .*absent\.txt of output 'Y'/);
    assert.equal(bench.backend.loadedCount, 0);
  });

  it("passes no rejected configuration to a backend, so that no library that it names runs", async () => {
    bench.models["echo"] = `backend: "echo" model_operations { op_library_filename: "tenants-own.so" }`;
    let isRequested = false;
    const asked = () => {
      isRequested = true;
      return Promise.reject(new Error("asked"));
    };
    Object.assign(bench.backend, { complete: asked, estimateBytes: asked, load: asked });
    await assert.rejects(bench.load("echo"), /uses 'model_operations.op_library_filename', which this server does not/);
    assert.equal(isRequested, false);
  });

  it("reads no label files that are not regular files or are too large", async () => {
    const directory = join(bench.directory, "echo");
    mkdirSync(directory);
    const labelled = (file: string) => echoConfig.replace('name: "Y"', `name: "Y" label_filename: "${file}"`);
    bench.models["echo"] = labelled("pipe");
    execFileSync("mkfifo", [join(directory, "pipe")]);
    await assert.rejects(bench.load("echo"), /failed to open label file .*pipe of output 'Y': it is not a file/);
    bench.models["echo"] = labelled("large");
    writeFileSync(join(directory, "large"), "");
    truncateSync(join(directory, "large"), 2 ** 40);
    await assert.rejects(bench.load("echo"), /label file .*large is larger than 16777216 bytes/);
    assert.equal(bench.engine.memory().usedBytes, 0);
  });

  it("rejects unknown models with Triton's texts", async () => {
    await assert.rejects(
      bench.infer(requestTo("nobody", [1])),
      /^InferenceError: Request for unknown model: 'nobody' is not found$/,
    );
    await bench.load("echo");
    assert.throws(() => bench.hold("echo", "3"), /'echo' version 3 is not found/);
    await bench.unload("echo");
    await assert.rejects(bench.infer(requestTo("echo", [1])), /'echo' has no available versions/);
  });

  it("uses one version for a whole call, also when models are loaded and unloaded during it", async () => {
    await bench.load("echo");
    const held = bench.hold("echo");
    await bench.unload("echo");
    await bench.load("echo");
    await bench.unload("echo");
    assert.throws(() => bench.hold("echo"), /'echo' has no available versions/);
    const response = await held.infer(requestTo("echo", [7]));
    assert.deepEqual([...new Int32Array(response.outputs[0]!.data.slice().buffer)], [7]);
    releaseResponse(response);
    await eventually(() => bench.backend.loadedCount === 1);
    held[Symbol.dispose]();
    held[Symbol.dispose]();
    await eventually(() => bench.backend.loadedCount === 0);
    assert.equal(held.view.config.name, "echo");
  });

  it("unloads a version whose calls do not end, and rejects their further requests", async () => {
    await bench.engine[Symbol.asyncDispose]();
    bench.engine = bench.open(null, 50);
    await bench.load("echo");
    const held = bench.hold("echo");
    await bench.unload("echo");
    await eventually(() => bench.backend.loadedCount === 0);
    await assert.rejects(held.infer(requestTo("echo", [7])), { code: "UNAVAILABLE" });
    held[Symbol.dispose]();
  });

  it("keeps the old version when a reload fails, and reports the reason", async () => {
    await bench.load("echo");
    bench.models["echo"] = failing(echoConfig);
    await assert.rejects(
      bench.load("echo"),
      /load failed for model 'echo': version 1 is at UNAVAILABLE state: Internal: ValueError: no;\n/,
    );
    assert.deepEqual((await bench.respond(requestTo("echo", [7]))).values, [7]);
    assert.equal(bench.backend.loadedCount, 1);
  });

  it("refuses circles, unknown steps and unknown models with the reason", async () => {
    bench.models["chain"] = chainOf(["echo", "chain"]);
    await assert.rejects(
      bench.load("chain"),
      /circular dependency between ensembles: chain -> \.\.\. -> chain -> chain/,
    );
    bench.models["chain"] = chainOf(["echo", "ghost"]);
    await assert.rejects(
      bench.load("chain"),
      /load failed for model 'chain': ensemble chain contains models that are not available or ambiguous: ghost\n/,
    );
    await assert.rejects(
      bench.load("ghost"),
      /failed to load 'ghost', failed to poll from model repository: no directory/,
    );
  });

  it("reports errors of a configuration and of a version differently, and names no version for ensembles", async () => {
    const refused = (code: string, message: RegExp) => (error: InferenceError) =>
      error.code === code && message.test(error.message);
    bench.models["echo"] = `${echoConfig} dynamic_batching { preferred_batch_size: 5 }`;
    await assert.rejects(
      bench.load("echo"),
      refused("INTERNAL", /^failed to load 'echo', failed to poll from model repository: dynamic batching preferred/),
    );
    bench.models["echo"] = echoConfig.replace("dims: [ -1 ]", "dims: [ 0 ]");
    await assert.rejects(
      bench.load("echo"),
      refused(
        "INVALID_ARG",
        /^load failed for model 'echo': version 1 is at UNAVAILABLE state: Invalid argument: model/,
      ),
    );
    await assert.rejects(
      bench.load("chain"),
      refused(
        "INVALID_ARG",
        /^load failed for model 'chain': ensemble 'chain' depends on 'echo' .* failed with error: version 1 is at/,
      ),
    );
    bench.models["echo"] = echoConfig;
    bench.models["chain"] = chainOf(["echo", "echo2"]).replace('key: "X" value: "X"', 'key: "Z" value: "X"');
    await assert.rejects(
      bench.load("chain"),
      refused(
        "INVALID_ARG",
        /^load failed for model 'chain': in ensemble chain, .* non-existing input Z in model echo\n$/,
      ),
    );
    assert.deepEqual(
      (await bench.engine.repositoryIndex(false)).map((row) => [row.name, row.version, row.state]),
      [
        ["echo", "1", "READY"],
        ["echo2", "1", "READY"],
        ["chain", "1", "UNAVAILABLE"],
      ],
    );
  });

  it("unloads the steps with an ensemble that is unloaded with its dependents, except those loaded by name", async () => {
    await bench.load("echo");
    await bench.load("chain");
    await bench.engine.unloadModel("chain", true);
    const states = (await bench.engine.repositoryIndex(false)).map((row) => [row.name, row.state]);
    assert.deepEqual(new Map(states as [string, string][]).get("echo"), "READY");
    assert.notEqual(new Map(states as [string, string][]).get("echo2"), "READY");
  });

  it("isolates namespaces and releases everything when one closes", async () => {
    const source = { repositoryDirectory: bench.directory, modelDirectoryName: "chain", servedName: "chain" };
    await bench.engine.openNamespace({ ...source, namespace: "a" }, bench.signal);
    await bench.engine.openNamespace({ ...source, namespace: "b" }, bench.signal);
    await assert.rejects(
      bench.engine.openNamespace({ ...source, namespace: "a" }, bench.signal),
      /has already been registered/,
    );
    assert.equal(bench.backend.loadedCount, 4);
    assert.deepEqual((await bench.respond(requestTo("chain", [5], { namespace: "b" }))).values, [5]);
    assert.equal(bench.closedCatalogCount, 0);
    assert.deepEqual([...bench.metricsDoors.keys()], ["", "a", "b"]);
    assert.equal(bench.backend.metrics, bench.metricsDoors.get("b"));
    await bench.engine.closeNamespace("a");
    assert.deepEqual([bench.backend.loadedCount, bench.closedCatalogCount], [2, 1]);
    assert.deepEqual([...bench.metricsDoors.keys()], ["", "b"]);
    await assert.rejects(bench.infer(requestTo("chain", [5], { namespace: "a" })), /is not found/);
    await assert.rejects(bench.engine.closeNamespace("a"), (error: InferenceError) => error.code === "NOT_FOUND");
  });

  it("rejects a load over the memory budget and charges the measured memory", async () => {
    await bench.engine[Symbol.asyncDispose]();
    bench.engine = bench.open(2500);
    await bench.load("echo");
    assert.equal(bench.engine.memory().usedBytes, 1000);
    await bench.load("echo2");
    bench.models["echo3"] = echoConfig;
    await assert.rejects(bench.load("echo3"), /^InferenceError: Out of memory: model 'echo3'/);
    assert.equal(bench.backend.loadedCount, 2);
    assert.equal(bench.engine.memory().usedBytes, 2000);
  });

  it("estimates a model whose files another model has in memory by the earlier cost of such a model, or as nearly nothing", async () => {
    await bench.engine[Symbol.asyncDispose]();
    bench.engine = bench.open(1500);
    await bench.load("echo");
    bench.backend.heldBytes = () => Promise.resolve(Number.MAX_SAFE_INTEGER);
    bench.backend.memoryBytes = 400;
    await bench.load("echo2");
    assert.equal(bench.engine.memory().usedBytes, 1400);
  });

  it("updates the memory charged for a model when it reports a change, except after its unload", async () => {
    await bench.load("echo");
    await bench.load("echo2");
    const { onMemory } = bench.backend;
    bench.backend.memoryBytes = 1500;
    onMemory?.();
    await eventually(() => bench.engine.memory().usedBytes === 2500);
    await bench.unload("echo2");
    await eventually(() => bench.engine.memory().usedBytes === 1000);
    onMemory?.();
    assert.equal(bench.engine.memory().usedBytes, 1000);
  });
});
