import { inferenceCodeText, type InferenceError } from "@galatea/base";
import { ignoredVersion } from "./version-policy.ts";

/**
 * Returns Triton's text for a circle of ensembles, which begins and ends with the same name; for a longer circle the whole path follows.
 */
export function circularText(circle: readonly string[]): string {
  const first = circle[0] as string;
  const way = circle.length > 3 ? ` (${circle.join(" -> ")})` : "";
  return `circular dependency between ensembles: ${first} -> ... -> ${circle.at(-2) as string} -> ${first}${way}`;
}

/** Returns Triton's error for a step whose version is not loaded. */
export function requiredVersionText(ensemble: string, step: string, version: number): string {
  return `ensemble '${ensemble}' depends on '${step}' whose required version ${version} is not loaded.`;
}

/** Returns Triton's text for a model that could not be polled. Triton's text hides the reason; here the reason follows it. */
export function notPolledText(name: string, why: string): string {
  return `failed to load '${name}', failed to poll from model repository: ${why}`;
}

/** Returns Triton's text for a model whose version policy selects no directory, then the directories that are ignored. */
export function noVersionText(name: string, misnamed: readonly string[]): string {
  const why = `at least one version must be available under the version policy of model '${name}'`;
  return [why, ...misnamed.map(ignoredVersion)].join("\n");
}

/** Returns Triton's text for steps that could not be polled. */
export function unavailableStepsText(ensemble: string, steps: readonly string[]): string {
  return `ensemble ${ensemble} contains models that are not available or ambiguous: ${steps.join(", ")}`;
}

/** Returns Triton's text for a version that does not load. */
export function versionFailedText(
  version: number,
  { code, message }: Pick<InferenceError, "code" | "message">,
): string {
  return `version ${version} is at UNAVAILABLE state: ${inferenceCodeText[code]}: ${message};`;
}

/** Returns Triton's text for a step that is not loaded. `why`: its error; null when it is not known. */
export function stepNotLoadedText(ensemble: string, step: string, why: string | null): string {
  const text = `ensemble '${ensemble}' depends on '${step}' which has no loaded version`;
  return why === null ? text : `${text}. Model '${step}' loading failed with error: ${why}`;
}
