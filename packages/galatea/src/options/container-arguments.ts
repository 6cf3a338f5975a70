import type { Flag } from "./flag.ts";
import { serveFlags } from "./serve-flags.ts";

/** Triton's entry point serves the contract and nothing else, unless a variable asks for more. */
const containerFlags = ["--allow-http=false", "--allow-grpc=false", "--allow-metrics=false"];

/** The flags that a variable of a container's environment stands for, by the variable. */
const flagsByVariable: ReadonlyMap<string, string> = new Map(
  Object.entries<Flag>(serveFlags).flatMap(([name, { variable }]) =>
    variable === undefined ? [] : [[variable, name]],
  ),
);

/** The variables that are flags of `serve` under another name. */
export const flagVariables: ReadonlySet<string> = new Set(flagsByVariable.keys());

/**
 * The arguments that a container's environment adds to the command line of `serve`, later ones before earlier ones. What
 * SAGEMAKER_TRITON_ADDITIONAL_ARGS holds is split at white space, without quotes, as the shell of Triton's entry point does.
 */
export function containerArguments(env: Readonly<Record<string, string | undefined>>): readonly string[] {
  const own = [...flagsByVariable].flatMap(([name, flag]) => (env[name] ? [`--${flag}=${env[name]}`] : []));
  const additional = (env.SAGEMAKER_TRITON_ADDITIONAL_ARGS ?? "").split(/\s+/).filter((word) => word !== "");
  return [...containerFlags, "--model-control-mode=explicit", ...own, ...additional];
}
