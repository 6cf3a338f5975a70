import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { cacheDirectory } from "./cache-directory.ts";
import { freePorts, launch, runToExit, type RunningServer, type RunResult, type ServerOptions } from "./launch.ts";
import { inherited } from "./oracle.ts";

const main = fileURLToPath(new URL("../../packages/galatea/src/main.ts", import.meta.url));
const readyTimeoutMs = 120_000;

/** Starts `galatea serve` of this checkout, with HTTP, gRPC, metrics and the container API on a port each. */
export async function startGalatea(options: ServerOptions): Promise<RunningServer> {
  const [httpPort = 0, grpcPort = 0, metricsPort = 0, sagemakerPort = 0] = await freePorts(4);
  return launch({
    kind: "galatea",
    command: process.execPath,
    arguments: [
      main,
      "serve",
      ...options.repositories.map((directory) => `--model-repository=${directory}`),
      "--http-address=127.0.0.1",
      "--grpc-address=127.0.0.1",
      `--grpc-port=${grpcPort}`,
      `--http-port=${httpPort}`,
      `--metrics-port=${metricsPort}`,
      "--allow-sagemaker=true",
      `--data=${join(cacheDirectory(process.env), "server-data")}`,
      `--sagemaker-port=${sagemakerPort}`,
      ...(options.flags ?? []),
    ],
    env: { ...inherited(), ...options.env },
    ports: { httpPort, grpcPort, metricsPort, sagemakerPort },
    readyTexts: [`Started HTTPService at 127.0.0.1:${httpPort}`, "Started Metrics Service at", "Started Sagemaker"],
    readyTimeoutMs,
    signal: options.signal,
    cleanUp: async () => {},
  });
}

/** Runs `galatea serve` with exactly these arguments until it ends by itself. */
export function runGalatea(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<RunResult> {
  return runToExit(process.execPath, [main, "serve", ...args], { ...inherited(), ...env }, 60_000);
}
