import { InferenceError } from "@galatea/base";
import type { Backend, ModelSource } from "./backend.ts";
import { backendRemedy } from "./unsupported-backends.ts";

/**
 * Returns the backend with this name, otherwise the first backend that also runs models of this name. Throws INVALID_ARG with Triton's text
 * and a remedy if there is none, and UNAVAILABLE if its packages are not installed on this machine.
 */
export async function findBackend(
  backends: readonly Backend[],
  name: string,
  { versionDirectory, modelDirectory }: Pick<ModelSource, "versionDirectory" | "modelDirectory">,
): Promise<Backend> {
  const own = backends.find((backend) => backend.name === name);
  if (own !== undefined) return own;
  for (const backend of backends) if ((await backend.runs?.(name)) === true) return backend;
  const known = backends.map((backend) => backend.name).join(", ");
  const instead = await backendRemedy(name, [versionDirectory, modelDirectory]);
  throw new InferenceError(
    "INVALID_ARG",
    `unable to find backend library for backend '${name}', try specifying runtime on the model configuration. ` +
      `This server has: ${known}.${instead === null ? "" : ` ${instead}.`}`,
  );
}
