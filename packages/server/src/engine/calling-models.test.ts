/** Tests of models that call other models through the `BlsClient` of their backend. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { InferenceError, systemClock } from "@galatea/base";
import type { Backend, LoadContext, ModelCall, BlsClient } from "../backends/index.ts";
import {
  noParameters,
  releaseResponse,
  type CallingExecution,
  type InferenceRequest,
  type InferenceResponse,
  type Outcome,
} from "../inference/index.ts";
import { echoConfig, EngineFixture, requestTo } from "./engine-fixtures.ts";

const callsConfig = echoConfig.replace('backend: "echo"', 'backend: "calls"');

/** A backend whose executions call `createResponse` for their response. */
class CallingBackend implements Backend {
  readonly name = "calls";
  /** BlsClient of the last load, by the name of the model. */
  readonly doors = new Map<string, BlsClient>();
  createResponse: (request: InferenceRequest, others: BlsClient) => Promise<Outcome> = (request, others) =>
    others.infer(callOf("echo", request, this.executionOf(others, request)));
  onLoad: (others: BlsClient) => Promise<void> = () => Promise.resolve();

  complete: Backend["complete"] = (_source, config) => Promise.resolve(config);
  estimateBytes: Backend["estimateBytes"] = () => Promise.resolve(null);
  warmUp: Backend["warmUp"] = () => Promise.resolve();

  load: Backend["load"] = async (source, _config, { bls: others }: LoadContext) => {
    this.doors.set(source.servedName, others);
    await this.onLoad(others);
    return {
      instances: [
        {
          name: source.servedName,
          executionsMax: 1,
          supervision: null,
          abandonRequest: () => {},
          execute: async (batch) => {
            const outcomes = await Promise.all(
              batch.map((request) =>
                this.createResponse(request, others).catch((error: unknown) => InferenceError.from(error)),
              ),
            );
            return { outcomes, computeInputNs: 0, computeInferNs: 1, computeOutputNs: 0 };
          },
        },
      ],
      memoryBytes: () => Promise.resolve(new Map()),
      [Symbol.asyncDispose]: () => Promise.resolve(),
    };
  };

  executionOf(owner: object, { caller, deadlineNs, executionMsMax }: InferenceRequest): CallingExecution {
    const depth = 1 + (caller?.execution.depth ?? 0);
    return {
      owner,
      modelName: "caller",
      depth,
      deadlineNs,
      executionMsMax,
      callers: new Set(caller === null ? [] : [caller]),
      holdsInstance: true,
    };
  }

  [Symbol.asyncDispose] = (): Promise<void> => Promise.resolve();
}

function callOf(modelName: string, request: InferenceRequest, caller: CallingExecution | null): ModelCall {
  for (const { block } of request.inputs) block?.retain();
  return {
    id: "",
    modelName,
    modelVersion: "",
    inputs: request.inputs,
    requestedOutputs: null,
    parameters: noParameters,
    sequence: null,
    queueTimeoutUs: 0,
    signal: new AbortController().signal,
    caller,
  };
}

async function openBench() {
  const bench = new EngineFixture();
  const calls = new CallingBackend();
  bench.backends.push(calls);
  bench.engine = bench.open(null);
  Object.assign(bench.models, { caller: callsConfig, echo: echoConfig, other: echoConfig });
  return { bench, calls };
}

const valuesOf = (response: InferenceResponse) => {
  const values = [...new Int32Array(response.outputs[0]!.data.slice().buffer)];
  releaseResponse(response);
  return values;
};
const source = (namespace: string, bench: EngineFixture) => ({
  namespace,
  repositoryDirectory: bench.directory,
  modelDirectoryName: "caller",
  servedName: "caller",
});

test("the caller owns the response of the called model, and the arena is empty afterwards", async () => {
  const { bench } = await openBench();
  await using _bench = bench;
  await bench.load("caller");
  await bench.load("echo");
  const { arena } = bench.backend;
  assert.deepEqual(valuesOf(await bench.infer(requestTo("caller", [1, 2, 3]))), [1, 2, 3]);
  assert.equal(arena!.usedBytes, 0);
  const [statistics] = bench.engine.statistics("echo", "");
  assert.equal(statistics!.success.count, 1);
});

test("calls of an unknown model, or for an unknown output, fail with Triton's texts", async () => {
  const { bench, calls } = await openBench();
  await using _bench = bench;
  await bench.load("caller");
  await assert.rejects(bench.infer(requestTo("caller", [1])), {
    message:
      "Model echo - Error when running inference: Failed for execute the inference request. Model 'echo' is not ready.",
  });
  await bench.load("echo");
  calls.createResponse = (request, others) =>
    others.infer({ ...callOf("echo", request, null), requestedOutputs: ["NONE"] });
  await assert.rejects(bench.infer(requestTo("caller", [1])), {
    code: "INVALID_ARG",
    message: "Model echo - Error when running inference: unexpected inference output 'NONE' for model 'echo'",
  });
});

test("a model can call the models of its own namespace and no others", async () => {
  const { bench, calls } = await openBench();
  await using _bench = bench;
  await bench.load("echo");
  await bench.engine.openNamespace(source("tenant", bench), bench.signal);
  const client = calls.doors.get("caller")!;
  assert.equal(client.isReady("echo", ""), false);
  await assert.rejects(bench.infer(requestTo("caller", [1], { namespace: "tenant" })), /Model 'echo' is not ready/);
  await client.unload("echo", false);
  assert.equal((await bench.states())["echo/1"], "READY");
  await client.load("echo", null, bench.signal);
  assert.deepEqual(valuesOf(await bench.infer(requestTo("caller", [4], { namespace: "tenant" }))), [4]);
  await bench.engine.closeNamespace("tenant");
  assert.equal((await bench.states())["echo/1"], "READY");
  assert.throws(() => client.isReady("echo", "x"), { code: "INVALID_ARG" });
});

test("a namespace closes when its running requests, with their calls to other models, have ended", async () => {
  const { bench, calls } = await openBench();
  await using _bench = bench;
  await bench.engine.openNamespace(source("tenant", bench), bench.signal);
  const client = calls.doors.get("caller")!;
  await client.load("echo", null, bench.signal);
  const started = Promise.withResolvers<void>();
  const goOn = Promise.withResolvers<void>();
  calls.createResponse = async (request, others) => {
    started.resolve();
    await goOn.promise;
    return await others.infer(callOf("echo", request, calls.executionOf(others, request)));
  };
  const call = bench.infer(requestTo("caller", [1, 2], { namespace: "tenant" }));
  await started.promise;
  const closed = bench.engine.closeNamespace("tenant");
  const late = requestTo("caller", [3], { namespace: "tenant" });
  await assert.rejects(bench.infer(late), { code: "NOT_FOUND", message: /has no available versions/ });
  await assert.rejects(client.infer(callOf("echo", late, null)), /Model 'echo' is not ready/);
  await assert.rejects(client.load("other", null, bench.signal), { code: "UNAVAILABLE" });
  await assert.rejects(bench.engine.closeNamespace("tenant"), { code: "NOT_FOUND" });
  goOn.resolve();
  assert.deepEqual(valuesOf(await call), [1, 2]);
  await closed;
  assert.equal(bench.backend.loadedCount, 0);
});

test("a server that stops lets running executions call other models", async () => {
  const { bench, calls } = await openBench();
  await bench.load("caller");
  await bench.load("echo");
  const started = Promise.withResolvers<void>();
  const goOn = Promise.withResolvers<void>();
  calls.createResponse = async (request, others) => {
    started.resolve();
    await goOn.promise;
    return await others.infer(callOf("echo", request, calls.executionOf(others, request)));
  };
  const pending = bench.infer(requestTo("caller", [5]));
  await started.promise;
  const stopped = bench[Symbol.asyncDispose]();
  goOn.resolve();
  assert.deepEqual(valuesOf(await pending), [5]);
  await stopped;
});

test("a call inherits the deadline of its request, and cannot have a later one", async () => {
  const { bench, calls } = await openBench();
  await using _bench = bench;
  bench.models["second"] = callsConfig;
  await bench.load("caller");
  await bench.load("second");
  const deadlineNs = systemClock.monotonicNs() + 60e9;
  const seen: number[] = [];
  let queueTimeoutUs = 0;
  calls.createResponse = (request, others) => {
    if (request.modelName === "second") {
      seen.push(request.deadlineNs);
      assert.equal(request.executionMsMax, 59_000);
      return Promise.resolve(new InferenceError("UNAVAILABLE", "seen"));
    }
    return others.infer({ ...callOf("second", request, calls.executionOf(others, request)), queueTimeoutUs });
  };
  for (queueTimeoutUs of [0, 120e6, 30e6])
    await assert.rejects(bench.infer({ ...requestTo("caller", [1]), deadlineNs, executionMsMax: 59_000 }), /seen/);
  assert.deepEqual(seen.slice(0, 2), [deadlineNs, deadlineNs]);
  assert.ok(seen[2]! < deadlineNs);
});

test("recursive calls are limited in depth", async () => {
  const { bench, calls } = await openBench();
  await using _bench = bench;
  await bench.load("caller");
  await bench.load("echo");
  calls.createResponse = (request, others) => {
    const above = { ...calls.executionOf(others, request), depth: 33 };
    return others.infer(callOf("echo", request, above));
  };
  await assert.rejects(bench.infer(requestTo("caller", [1])), /models call each other more than 32 levels deep/);
});

test("two models that load each other during their own loads do not deadlock", async () => {
  const { bench, calls } = await openBench();
  await using _bench = bench;
  bench.models["second"] = callsConfig;
  calls.onLoad = async (others) => {
    await Promise.all(["caller", "second"].map((name) => others.load(name, null, bench.signal)));
  };
  await assert.rejects(bench.load("caller"), /failed to load '(caller|second)': it is being loaded or unloaded/);
});

test("a model that waits for itself fails, and requests outside of the deadlock are not affected", async () => {
  const { bench, calls } = await openBench();
  await using _bench = bench;
  await bench.load("caller");
  calls.createResponse = (request, others) =>
    others.infer(callOf("caller", request, calls.executionOf(others, request)));
  await assert.rejects(bench.infer(requestTo("caller", [1])), { code: "UNAVAILABLE", message: /waits for 'caller'/ });
});
