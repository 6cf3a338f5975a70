import type { Flag } from "./flag.ts";
import { serveFlags } from "./serve-flags.ts";

/**
 * Like Triton's SageMaker entry point, a container serves only the container contract, unless a variable enables more
 * listeners.
 */
const containerFlags = ["--allow-http=false", "--allow-grpc=false", "--allow-metrics=false"];

/** Names of the flags that variables of a container's environment set, by variable. */
const flagsByVariable: ReadonlyMap<string, string> = new Map(
  Object.entries<Flag>(serveFlags).flatMap(([name, { variable }]) =>
    variable === undefined ? [] : [[variable, name]],
  ),
);

/** Variables of a container's environment that set a flag of `serve`. */
export const flagVariables: ReadonlySet<string> = new Set(flagsByVariable.keys());

/**
 * Returns the arguments that a container's environment adds to the command line of `serve`. A later argument overrides
 * an earlier one. As in Triton's entry point, SAGEMAKER_TRITON_ADDITIONAL_ARGS is split at white space, without quotes.
 */
export function containerArguments(env: Readonly<Record<string, string | undefined>>): readonly string[] {
  const own = [...flagsByVariable].flatMap(([name, flag]) => (env[name] ? [`--${flag}=${env[name]}`] : []));
  const additional = (env.SAGEMAKER_TRITON_ADDITIONAL_ARGS ?? "").split(/\s+/).filter((word) => word !== "");
  return [...containerFlags, "--model-control-mode=explicit", ...own, ...additional];
}
