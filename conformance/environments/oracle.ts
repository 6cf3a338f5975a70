import { readdir, rm } from "node:fs/promises";
import { delimiter, join } from "node:path";
import type { Environment } from "./environment.ts";
import { freePorts, launch, runToExit, type RunningServer, type RunResult, type ServerOptions } from "./launch.ts";
import { oracleFiles } from "./oracle-files.ts";

/** The version that recordings contain. */
export const oracleVersion = "2.51.0";
export const oraclePackage = "nvidia-pytriton==0.7.0";

const readyTimeoutMs = 300_000;

/** Starts the real tritonserver on the CPU, with HTTP, gRPC, metrics and the SageMaker endpoint on a port each. */
export async function startOracle(environment: Environment, options: ServerOptions): Promise<RunningServer> {
  const [httpPort = 0, grpcPort = 0, metricsPort = 0, sagemakerPort = 0] = await freePorts(4);
  const prefix = `galatea_${process.pid}_${httpPort}_`;
  return launch({
    kind: "oracle",
    command: oracleFiles(environment).binary,
    arguments: [
      ...options.repositories.map((directory) => `--model-repository=${directory}`),
      `--backend-directory=${oracleFiles(environment).backends}`,
      `--cache-directory=${oracleFiles(environment).caches}`,
      `--backend-config=python,shm-region-prefix-name=${prefix}`,
      "--http-address=127.0.0.1",
      "--grpc-address=127.0.0.1",
      `--http-port=${httpPort}`,
      `--grpc-port=${grpcPort}`,
      `--metrics-port=${metricsPort}`,
      "--allow-sagemaker=true",
      `--sagemaker-port=${sagemakerPort}`,
      ...(options.flags ?? []),
    ],
    env: oracleEnv(environment, options.env ?? {}),
    ports: { httpPort, grpcPort, metricsPort, sagemakerPort },
    readyTexts: [`Started HTTPService at 127.0.0.1:${httpPort}`, "Started Metrics Service at", "Started Sagemaker"],
    latePorts: [metricsPort],
    readyTimeoutMs,
    signal: options.signal,
    cleanUp: () => removeSharedMemory(prefix),
  });
}

/** Runs tritonserver with exactly these arguments until it ends by itself. */
export function runOracle(
  environment: Environment,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<RunResult> {
  return runToExit(
    oracleFiles(environment).binary,
    [...args, `--backend-directory=${oracleFiles(environment).backends}`],
    oracleEnv(environment, env),
    120_000,
  );
}

function oracleEnv(environment: Environment, extra: Readonly<Record<string, string>>): Record<string, string> {
  return {
    ...inherited(),
    PATH: [join(environment.directory, "bin"), process.env["PATH"]].join(delimiter),
    LD_LIBRARY_PATH: [oracleFiles(environment).libraries, environment.pythonLibraries].join(delimiter),
    PYTHONPATH: environment.sitePackages,
    PYTHONDONTWRITEBYTECODE: "1",
    ...extra,
  };
}

/** Returns the caller's environment without variables that would change a server's behaviour. */
export function inherited(): Record<string, string> {
  return Object.fromEntries(
    Object.entries(process.env).filter(
      (entry): entry is [string, string] =>
        entry[1] !== undefined && !/^(SAGEMAKER_|AIP_|TRITON|PYTHON|LD_)/.test(entry[0]),
    ),
  );
}

/** Removes the shared memory that killed stubs leave behind. */
async function removeSharedMemory(prefix: string): Promise<void> {
  for (const name of await readdir("/dev/shm")) {
    if (name.startsWith(prefix)) await rm(join("/dev/shm", name), { force: true });
  }
}
