import type { Case } from "../case.ts";
import { rpc } from "../grpc-messages.ts";
import { differs } from "../requests.ts";

const main = (name: string, ...steps: Case["steps"]): Case => ({ name: `grpc: ${name}`, fixture: "main", steps });
const control = (name: string, ...steps: Case["steps"]): Case => ({
  name: `grpc control: ${name}`,
  fixture: "control",
  steps,
});

const metadataOf = ["add_sub", "add_sub_batch", "identity_all", "reshaped", "versions", "auto_without_config", "chain"];
const configsOf = ["add_sub", "optional", "scores", "versions", "auto_without_config", "queue_timeout", "chain"];

const stringParam = (value: string) => ({ parameterChoice: { case: "stringParam" as const, value } });
const boolParam = (value: boolean) => ({ parameterChoice: { case: "boolParam" as const, value } });
const bytesParam = (text: string) => ({
  parameterChoice: { case: "bytesParam" as const, value: Buffer.from(text, "utf8") },
});

/** The server's metadata, and that of its models. */
export const grpcServer: readonly Case[] = [
  main("the server is live", rpc("serverLive", {})),
  main("the server is ready", rpc("serverReady", {})),
  main(
    "the server's metadata",
    differs(rpc("serverMetadata", {}), { row: "server-version", status: 200, includes: ['"name":"conformance"'] }),
  ),
  ...metadataOf.map((name) => main(`metadata: ${name}`, rpc("modelMetadata", { name }))),
  main("metadata: one version", rpc("modelMetadata", { name: "versions", version: "1" })),
  main("metadata: unknown model", rpc("modelMetadata", { name: "nobody" }, "error")),
  main("metadata: unknown version", rpc("modelMetadata", { name: "add_sub", version: "9" }, "error")),
  main("metadata: no name", rpc("modelMetadata", {}, "error")),
  main("metadata: a version that is not a number", rpc("modelMetadata", { name: "add_sub", version: "one" }, "error")),
  main("metadata: a version with digits first", rpc("modelMetadata", { name: "add_sub", version: "1x" })),
  main("metadata: a negative version", rpc("modelMetadata", { name: "add_sub", version: "-1" }, "error")),
  main("metadata: another negative version", rpc("modelMetadata", { name: "add_sub", version: "-2" }, "error")),
  main("metadata: version 0", rpc("modelMetadata", { name: "add_sub", version: "0" }, "error")),
  main(
    "metadata: a version beyond 64 bits",
    rpc("modelMetadata", { name: "add_sub", version: "99999999999999999999" }, "error"),
  ),
  main("ready: a model", rpc("modelReady", { name: "add_sub" })),
  main("ready: a version", rpc("modelReady", { name: "versions", version: "3" })),
  main("ready: unknown model", rpc("modelReady", { name: "nobody" })),
  main("ready: unknown version", rpc("modelReady", { name: "add_sub", version: "9" })),
  ...configsOf.map((name) => main(`config: ${name}`, rpc("modelConfig", { name }, "map"))),
  main("config: unknown model", rpc("modelConfig", { name: "nobody" }, "error")),
  main("config: unknown version", rpc("modelConfig", { name: "add_sub", version: "2" }, "error")),
  main("statistics: unknown model", rpc("modelStatistics", { name: "nobody" }, "error")),
  main("statistics: unknown version", rpc("modelStatistics", { name: "add_sub", version: "9" }, "error")),
  main("statistics: a model without requests", rpc("modelStatistics", { name: "scores_batch" }, "statistics")),
  main("health: the server", {
    request: { method: "GRPC", path: "/grpc.health.v1.Health/Check", body: new Uint8Array(5) },
    compare: "json",
  }),
  main("an unknown method", {
    request: { method: "GRPC", path: "/inference.GRPCInferenceService/Nothing", body: new Uint8Array(5) },
    compare: "status",
  }),
  main("an unknown service", {
    request: { method: "GRPC", path: "/nothing.Service/Nothing", body: new Uint8Array(5) },
    compare: "status",
  }),
  control("the index", rpc("repositoryIndex", { ready: true })),
  control("the index of a named repository", rpc("repositoryIndex", { repositoryName: "r" }, "error")),
  control(
    "load, metadata, unload",
    rpc("repositoryModelLoad", { modelName: "auto" }),
    rpc("modelMetadata", { name: "auto" }),
    rpc("repositoryModelUnload", { modelName: "auto" }),
    rpc("modelReady", { name: "nobody" }, "status"),
  ),
  control("load of an unknown model", rpc("repositoryModelLoad", { modelName: "nobody" }, "error")),
  control(
    "load from a named repository",
    rpc("repositoryModelLoad", { repositoryName: "r", modelName: "auto" }, "error"),
  ),
  control("unload of an unknown model", rpc("repositoryModelUnload", { modelName: "nobody" }, "error")),
  control(
    "unload from a named repository",
    rpc("repositoryModelUnload", { repositoryName: "r", modelName: "auto" }, "error"),
  ),
  control(
    "load with a configuration",
    rpc("repositoryModelLoad", {
      modelName: "auto",
      parameters: { config: stringParam('{"backend":"python","max_batch_size":2}') },
    }),
    rpc("modelMetadata", { name: "auto" }),
    rpc("repositoryModelUnload", { modelName: "auto", parameters: { unload_dependents: boolParam(true) } }),
  ),
  control(
    "load with a configuration of the wrong type",
    rpc("repositoryModelLoad", { modelName: "auto", parameters: { config: bytesParam("{}") } }, "error"),
  ),
  control(
    "load with a file of the wrong type",
    rpc("repositoryModelLoad", { modelName: "auto", parameters: { "file:1/model.py": stringParam("x") } }, "error"),
  ),
  control(
    "load with an unknown parameter",
    rpc("repositoryModelLoad", { modelName: "auto", parameters: { colour: stringParam("red") } }, "error"),
  ),
  control(
    "unload with a parameter of the wrong type",
    rpc("repositoryModelUnload", { modelName: "auto", parameters: { unload_dependents: stringParam("yes") } }, "error"),
  ),
];
