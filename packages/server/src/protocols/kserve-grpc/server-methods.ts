import { InferenceError, type InferenceCode } from "@galatea/base";
import type { DurationStatistics, Engine, LoadOverride, ModelStatistics, ModelTarget } from "../../engine/index.ts";
import { GRPCInferenceService as service, type ModelRepositoryParameter } from "./gen/grpc_service_pb.js";
import { parseVersion } from "./model-version.ts";
import { unaryMethod, type CallHandler } from "./unary-method.ts";

/** Returns the methods of GRPCInferenceService that describe the server and its models, and those that load and unload models. */
export function serverMethods(engine: Engine): ReadonlyMap<string, CallHandler> {
  const { method } = service;
  return new Map<string, CallHandler>([
    ["ServerLive", unaryMethod(method.serverLive, () => ({ live: engine.live }))],
    ["ServerReady", unaryMethod(method.serverReady, () => ({ ready: engine.ready }))],
    [
      "ModelReady",
      unaryMethod(method.modelReady, ({ name, version }) => ({
        ready: isModelReady(engine, targetOf(name, version)),
      })),
    ],
    [
      "ServerMetadata",
      unaryMethod(method.serverMetadata, () => {
        const { name, version, extensions } = engine.serverMetadata();
        return { name, version, extensions: [...extensions] };
      }),
    ],
    ["ModelMetadata", unaryMethod(method.modelMetadata, ({ name, version }) => metadata(engine, name, version))],
    [
      "ModelConfig",
      unaryMethod(method.modelConfig, ({ name, version }) => ({
        config: configOf(engine, name, version),
      })),
    ],
    [
      "ModelStatistics",
      unaryMethod(method.modelStatistics, ({ name, version }) => ({
        modelStats: engine.statistics(name, parseVersion(version)).map(statisticsRow),
      })),
    ],
    [
      "RepositoryIndex",
      unaryMethod(method.repositoryIndex, async ({ repositoryName, ready }) => {
        refuseRepositoryName(repositoryName);
        const rows = await engine.repositoryIndex(ready);
        return { models: rows.map(({ name, version, state, reason }) => ({ name, version, state, reason })) };
      }),
    ],
    [
      "RepositoryModelLoad",
      unaryMethod(method.repositoryModelLoad, async ({ repositoryName, modelName, parameters }, call) => {
        refuseRepositoryName(repositoryName);
        await engine.loadModel(modelName, readOverride(parameters), call.signal);
        return {};
      }),
    ],
    [
      "RepositoryModelUnload",
      unaryMethod(method.repositoryModelUnload, async ({ repositoryName, modelName, parameters }) => {
        refuseRepositoryName(repositoryName);
        await engine.unloadModel(modelName, readUnloadDependents(parameters));
        return {};
      }),
    ],
  ]);
}

/** Returns the target for a model of the server's own repositories. */
function targetOf(modelName: string, version: string): ModelTarget {
  return { namespace: "", modelName, modelVersion: parseVersion(version) };
}

function configOf(engine: Engine, name: string, version: string) {
  using model = engine.open(targetOf(name, version));
  return model.view.config.message;
}

/**
 * Returns whether a model is ready. Returns false for an unknown model, because clients call this method to find out whether a model
 * exists.
 */
function isModelReady(engine: Engine, target: ModelTarget): boolean {
  try {
    using model = engine.open(target);
    return model.isHealthy;
  } catch (error) {
    if (error instanceof InferenceError && unready.has(error.code)) return false;
    throw error;
  }
}

const unready: ReadonlySet<InferenceCode> = new Set(["NOT_FOUND", "UNAVAILABLE"]);

function metadata(engine: Engine, name: string, version: string) {
  const found = engine.modelMetadata(targetOf(name, version));
  const tensor = ({ name, datatype, shape }: (typeof found.inputs)[number]) => ({
    name,
    datatype,
    shape: shape.map(BigInt),
  });
  return {
    name: found.name,
    versions: [...found.versions],
    platform: found.platform,
    inputs: found.inputs.map(tensor),
    outputs: found.outputs.map(tensor),
  };
}

function duration({ count, ns }: DurationStatistics) {
  return { count: BigInt(count), ns: BigInt(Math.round(ns)) };
}

/**
 * Converts statistics to a message. This server has no response cache, but the cache's durations are set because perf_analyzer reads all
 * fields.
 */
function statisticsRow(row: ModelStatistics) {
  return {
    name: row.name,
    version: row.version,
    lastInference: BigInt(Math.round(row.lastInferenceMs)),
    inferenceCount: BigInt(row.inferenceCount),
    executionCount: BigInt(row.executionCount),
    inferenceStats: {
      success: duration(row.success),
      fail: duration(row.fail),
      queue: duration(row.queue),
      computeInput: duration(row.computeInput),
      computeInfer: duration(row.computeInfer),
      computeOutput: duration(row.computeOutput),
      cacheHit: {},
      cacheMiss: {},
    },
    batchStats: row.batches.map((batch) => ({
      batchSize: BigInt(batch.batchSize),
      computeInput: duration(batch.computeInput),
      computeInfer: duration(batch.computeInfer),
      computeOutput: duration(batch.computeOutput),
    })),
  };
}

type Parameters = Readonly<Record<string, ModelRepositoryParameter>>;

function readOverride(parameters: Parameters): LoadOverride | null {
  let configJson: string | null = null;
  const files = new Map<string, Uint8Array>();
  for (const [name, { parameterChoice }] of Object.entries(parameters)) {
    if (name === "config") {
      if (parameterChoice.case !== "stringParam") throw wrongType("load ", name, "string_param");
      configJson = parameterChoice.value;
    } else if (name.startsWith("file:")) {
      if (parameterChoice.case !== "bytesParam") throw wrongType("load ", name, "bytes_param");
      files.set(name.slice("file:".length), parameterChoice.value);
    } else throw new InferenceError("INVALID_ARG", `unrecognized load parameter '${name}'.`);
  }
  return configJson === null && files.size === 0 ? null : { configJson, files };
}

function readUnloadDependents(parameters: Parameters): boolean {
  const choice = parameters["unload_dependents"]?.parameterChoice;
  if (choice === undefined) return false;
  if (choice.case !== "boolParam") throw wrongType("", "unload_dependents", "bool_param");
  return choice.value;
}

function wrongType(of: string, name: string, expected: string): InferenceError {
  return new InferenceError(
    "INVALID_ARG",
    `invalid value type for ${of === "" ? "" : `${of}parameter `}'${name}'${of === "" ? " parameter" : ""}, expected ${expected}.`,
  );
}

function refuseRepositoryName(name: string): void {
  if (name !== "") throw new InferenceError("UNSUPPORTED", "'repository_name' specification is not supported");
}
