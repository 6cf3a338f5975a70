import { readFile } from "node:fs/promises";
import type { PodTypeRows } from "@galatea/hosting/kubernetes-host";

/** The settings in the file of `--pods`, with which instances run as pods. The Helm chart writes the file. */
export interface PodsFile {
  /** The name of the chart's release, which its Service and StatefulSet also have. */
  readonly platform: string;
  readonly image: string;
  readonly pullPolicy: "Always" | "IfNotPresent" | "Never";
  readonly pullSecrets: readonly string[];
  readonly types: PodTypeRows;
  /** The priority class of pods; empty: the cluster's default. */
  readonly priorityClass: string;
  /** Disk size of each instance, such as `20Gi`. */
  readonly disk: string;
  /** Maximum time until the agent in a new instance's pod is ready, in seconds. */
  readonly startSeconds: number;
  /** Time for requests in flight to complete when a pod is deleted, in seconds. */
  readonly drainSeconds: number;
  /** Additional flags of `galatea agent`. */
  readonly flags: readonly string[];
  /** Additional environment variables of the agent, in the format of `env` in Kubernetes. */
  readonly environment: readonly object[];
}

/** The type that each field must have, as `typeOf` names it. */
const fields: Readonly<Record<keyof PodsFile, "string" | "number" | "array" | "object">> = {
  platform: "string",
  image: "string",
  pullPolicy: "string",
  pullSecrets: "array",
  types: "object",
  priorityClass: "string",
  disk: "string",
  startSeconds: "number",
  drainSeconds: "number",
  flags: "array",
  environment: "array",
};

const typeOf = (value: unknown) => (Array.isArray(value) ? "array" : typeof value);

/** Reads the file. Rejects with an error that names the file and the invalid field. */
export async function readPodsFile(path: string): Promise<PodsFile> {
  let read: Readonly<Record<string, unknown>>;
  try {
    read = JSON.parse(await readFile(path, "utf8")) as Readonly<Record<string, unknown>>;
  } catch (error) {
    throw new Error(`cannot read the file of --pods: ${(error as Error).message}`, { cause: error });
  }
  for (const [name, type] of Object.entries(fields)) {
    const found = typeOf(read[name]);
    if (found !== type) throw new Error(`'${path}' of --pods: ${name} has to be of type ${type} (found ${found})`);
  }
  const unknown = Object.keys(read).find((name) => !(name in fields));
  if (unknown !== undefined) throw new Error(`'${path}' of --pods: unknown field ${unknown}`);
  return read as unknown as PodsFile;
}
