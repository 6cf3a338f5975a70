import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { startOracle, type RunningServer } from "../conformance/environments/index.ts";
import { requestOk } from "./send-request.ts";
import type { BenchContext } from "./row.ts";
import { temporaryDirectory, writeModels, type BenchModels } from "./servers.ts";

/** The directory in which Triton looks for unpacked archives; Galatea's is configurable. */
export const originalRoot = "/opt/ml";

const targetHeader = (hash: string) => ({
  "x-amzn-sagemaker-target-model": `${hash}.tar.gz`,
  "content-type": "application/json",
});

/** The container contract's multi-model routes as the platform's agent uses them. */
export async function loadModel(server: RunningServer, hash: string): Promise<void> {
  const body = Buffer.from(JSON.stringify({ model_name: hash, url: `/opt/ml/models/${hash}/model` }));
  await requestOk(server.sagemakerPort, "POST", "/models", body, targetHeader(hash));
}

export async function unloadModel(server: RunningServer, hash: string): Promise<void> {
  await requestOk(server.sagemakerPort, "DELETE", `/models/${hash}`, undefined, targetHeader(hash));
}

export async function invokeModel(server: RunningServer, hash: string, body: Uint8Array): Promise<void> {
  await requestOk(server.sagemakerPort, "POST", `/models/${hash}/invoke`, body, targetHeader(hash));
}

/** Unpacked archives of the same content under each name. */
export async function writeUnpacked(
  root: string,
  hashes: readonly string[],
  models: BenchModels,
): Promise<AsyncDisposable> {
  const directories = hashes.map((hash) => join(root, "models", hash));
  for (const directory of directories) {
    await mkdir(join(directory, "model"), { recursive: true });
    await writeModels(join(directory, "model"), models);
  }
  return {
    [Symbol.asyncDispose]: async () => {
      for (const directory of directories) await rm(directory, { recursive: true, force: true });
    },
  };
}

/** Triton as the platform starts it for multi-model hosting. */
export async function startOracleContainer(context: BenchContext): Promise<RunningServer & AsyncDisposable> {
  const empty = await temporaryDirectory();
  const server = await startOracle(context.oracle, {
    repositories: [empty.path],
    flags: ["--model-control-mode=explicit", "--model-namespacing=true"],
    env: { SAGEMAKER_MULTI_MODEL: "true", SAGEMAKER_TRITON_PING_MODE: "live" },
  });
  return {
    ...server,
    [Symbol.asyncDispose]: async () => {
      await server.stop();
      await empty[Symbol.asyncDispose]();
    },
  };
}
