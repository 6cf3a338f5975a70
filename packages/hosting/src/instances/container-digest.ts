import { createHash } from "node:crypto";
import type { ContainerSpec } from "./model-host.ts";

/** Returns a digest of everything a container's process is started with; `output` is not part of it. */
export function containerDigest(spec: Omit<ContainerSpec, "output">): string {
  const environment = Object.entries(spec.environment).toSorted(([one], [other]) => (one < other ? -1 : 1));
  return createHash("sha256")
    .update(
      JSON.stringify([spec.title, spec.runtime, spec.models, environment, spec.modelMemoryBytes, spec.concurrencyMax]),
    )
    .digest("hex");
}
