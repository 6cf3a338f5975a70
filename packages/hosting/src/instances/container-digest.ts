import { createHash } from "node:crypto";
import type { ContainerSpec } from "./model-host.ts";

/**
 * Returns a digest of the specification with which a container's process is started, without `output`. A later run of
 * the platform adopts a container only if the digests are equal.
 */
export function containerDigest(spec: Omit<ContainerSpec, "output">): string {
  const environment = Object.entries(spec.environment).toSorted(([one], [other]) => (one < other ? -1 : 1));
  return createHash("sha256")
    .update(
      JSON.stringify([spec.title, spec.runtime, spec.models, environment, spec.modelMemoryBytes, spec.concurrencyMax]),
    )
    .digest("hex");
}
