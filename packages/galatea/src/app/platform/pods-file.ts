import { readFile } from "node:fs/promises";
import type { PodTypeRows } from "@galatea/hosting/kubernetes-host";

/** The file of `--pods`, which the chart writes: how instances run as pods. */
export interface PodsFile {
  /** The name of the chart's release, of its Service and of its StatefulSet. */
  readonly platform: string;
  readonly image: string;
  readonly pullPolicy: "Always" | "IfNotPresent" | "Never";
  readonly pullSecrets: readonly string[];
  readonly types: PodTypeRows;
  /** Empty for the cluster's default priority. */
  readonly priorityClass: string;
  /** Disk of each instance, such as `20Gi`. */
  readonly disk: string;
  /** Seconds that the pod of a new instance may take until its agent is ready. */
  readonly startSeconds: number;
  /** Seconds that requests in flight get when a pod is deleted. */
  readonly drainSeconds: number;
  /** Further flags of `galatea agent`. */
  readonly flags: readonly string[];
  /** Further variables of the agent, as Kubernetes' `env`. */
  readonly environment: readonly object[];
}

/** The type of each field, as `typeOf` names it. */
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

/** Rejects with an error that names the file and the field. */
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
