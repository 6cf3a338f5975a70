import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import {
  cacheDirectory,
  ensureEnvironment,
  freePorts,
  inherited,
  launch,
  startOracle,
  type RunningServer,
} from "../../conformance/environments/index.ts";
import { requestOk } from "../send-request.ts";
import type { BenchContext } from "../row.ts";
import type { ComparedServer } from "./compared-server.ts";
import { multiModelServer, register, startJavaServer, torchServe } from "./java-servers.ts";

/** The directory of `write_rivals.py`: its models, and the packages that all servers share. */
export interface RivalFiles {
  readonly directory: string;
  readonly packages: string;
}

const main = fileURLToPath(new URL("../../packages/galatea/src/main.ts", import.meta.url));
const readyTimeoutMs = 60_000;
const json = "application/json";
const flower = [5.1, 3.5, 1.4, 0.2];
const rows = Buffer.from(JSON.stringify([flower]));
const tensor = (name: string) =>
  Buffer.from(JSON.stringify({ inputs: [{ name, shape: [1, 4], datatype: "FP64", data: flower }] }));

/** Our server as a multi-model container, with two workers for each model like the other servers. */
function ours(
  kind: "scikit-learn" | "pytorch",
  { directory }: RivalFiles,
): Omit<ComparedServer, "body" | "contentType"> {
  return {
    name: "galatea",
    start: async () => {
      const [port = 0] = await freePorts(1);
      return await launch({
        kind: "galatea",
        command: process.execPath,
        arguments: [
          main,
          "serve",
          "--allow-sagemaker=true",
          "--http-address=127.0.0.1",
          `--sagemaker-port=${port}`,
          `--ml-root=${join(directory, "galatea")}`,
          `--container-kind=${kind}`,
          `--data=${join(cacheDirectory(process.env), "server-data")}`,
        ],
        env: {
          ...inherited(),
          SAGEMAKER_MULTI_MODEL: "true",
          SAGEMAKER_NUM_MODEL_WORKERS: "2",
          OMP_NUM_THREADS: "1",
        },
        ports: { httpPort: port, grpcPort: 0, metricsPort: 0, sagemakerPort: port },
        readyTexts: ["Started Sagemaker HTTPService"],
        readyTimeoutMs,
        signal: undefined,
        cleanUp: async () => {},
      });
    },
    load: async ({ sagemakerPort }, model) => {
      const body = Buffer.from(JSON.stringify({ model_name: model, url: `/opt/ml/models/${model}/model` }));
      await requestOk(sagemakerPort, "POST", "/models", body);
    },
    path: (model) => `/models/${model}/invoke`,
  };
}

async function startMlServer({ directory, packages }: RivalFiles): Promise<RunningServer> {
  const { python } = await ensureEnvironment(cacheDirectory(process.env), "mlserver");
  const [httpPort = 0, grpcPort = 0, metricsPort = 0] = await freePorts(3);
  const location = join(directory, "mlserver");
  const settings = {
    host: "127.0.0.1",
    http_port: httpPort,
    grpc_port: grpcPort,
    metrics_port: metricsPort,
    parallel_workers: 2,
    load_models_at_startup: false,
    access_log: false,
    debug: false,
  };
  await writeFile(join(location, "settings.json"), JSON.stringify(settings));
  return await launch({
    kind: "oracle",
    command: python,
    arguments: ["-m", "mlserver.cli.main", "start", location],
    env: { ...inherited(), PYTHONPATH: packages, OMP_NUM_THREADS: "1", PYTHONUNBUFFERED: "1" },
    ports: { httpPort, grpcPort, metricsPort, sagemakerPort: httpPort },
    readyTexts: [],
    latePorts: [httpPort],
    readyTimeoutMs,
    signal: undefined,
    cleanUp: async () => {},
  });
}

/**
 * Servers for a scikit-learn model: ours and multi-model-server with a script and the real toolkit, MLServer, and
 * Triton's Python backend.
 */
export function sklearnServers(
  { oracle }: BenchContext,
  location: RivalFiles,
): readonly [ComparedServer, ...ComparedServer[]] {
  const repository = (model: string) => `/v2/repository/models/${model}/load`;
  const infer = (model: string) => `/v2/models/${model}/infer`;
  return [
    { ...ours("scikit-learn", location), body: rows, contentType: json },
    {
      name: "multi-model-server",
      start: () =>
        startJavaServer(multiModelServer, { store: join(location.directory, "mms"), packages: location.packages }),
      load: (server, model) => register(multiModelServer, server, model),
      path: (model) => `/predictions/${model}`,
      body: rows,
      contentType: json,
    },
    {
      name: "MLServer",
      start: () => startMlServer(location),
      load: async ({ httpPort }, model) => void (await requestOk(httpPort, "POST", repository(model))),
      path: infer,
      body: tensor("rows"),
      contentType: json,
    },
    {
      name: "Triton's Python backend",
      start: () =>
        startOracle(oracle, {
          repositories: [join(location.directory, "triton")],
          flags: ["--model-control-mode=explicit"],
          env: { OMP_NUM_THREADS: "1" },
        }),
      load: async ({ httpPort }, model) => void (await requestOk(httpPort, "POST", repository(model))),
      path: infer,
      body: tensor("ROWS"),
      contentType: json,
    },
  ];
}

/** Servers for TorchScript: ours and TorchServe, with the same functions. */
export function torchServers(location: RivalFiles, numbers: number): readonly [ComparedServer, ...ComparedServer[]] {
  const data = Float32Array.from({ length: numbers }, (_, index) => Math.sin(index));
  const requested = { body: Buffer.from(data.buffer), contentType: "application/octet-stream" };
  return [
    { ...ours("pytorch", location), ...requested },
    {
      name: "TorchServe",
      start: () =>
        startJavaServer(torchServe, { store: join(location.directory, "torchserve"), packages: location.packages }),
      load: (server, model) => register(torchServe, server, model),
      path: (model) => `/predictions/${model}`,
      ...requested,
    },
  ];
}
