import { inferenceCodeText, type InferenceError } from "@galatea/base";
import { ignoredDirectoryWarning } from "./version-policy.ts";

/**
 * Returns Triton's text for a cycle of ensembles. `circle` begins and ends with the same name. For a longer cycle, the whole path follows
 * the text.
 */
export function circularDependencyText(circle: readonly string[]): string {
  const first = circle[0] as string;
  const way = circle.length > 3 ? ` (${circle.join(" -> ")})` : "";
  return `circular dependency between ensembles: ${first} -> ... -> ${circle.at(-2) as string} -> ${first}${way}`;
}

/** Returns Triton's text for an ensemble step whose required version is not loaded. */
export function missingVersionText(ensemble: string, step: string, version: number): string {
  return `ensemble '${ensemble}' depends on '${step}' whose required version ${version} is not loaded.`;
}

/** Returns Triton's text for a model that could not be polled. Appends the reason, which Triton only logs. */
export function pollErrorText(name: string, why: string): string {
  return `failed to load '${name}', failed to poll from model repository: ${why}`;
}

/** Returns Triton's text for a model whose version policy selects no directory, followed by the names of ignored directories. */
export function noVersionErrorText(name: string, misnamed: readonly string[]): string {
  const why = `at least one version must be available under the version policy of model '${name}'`;
  return [why, ...misnamed.map(ignoredDirectoryWarning)].join("\n");
}

/** Returns Triton's text for ensemble steps that could not be polled. */
export function unavailableStepsText(ensemble: string, steps: readonly string[]): string {
  return `ensemble ${ensemble} contains models that are not available or ambiguous: ${steps.join(", ")}`;
}

/** Returns Triton's text for a version that failed to load. */
export function versionFailedText(
  version: number,
  { code, message }: Pick<InferenceError, "code" | "message">,
): string {
  return `version ${version} is at UNAVAILABLE state: ${inferenceCodeText[code]}: ${message};`;
}

/** Returns Triton's text for an ensemble step that is not loaded. `why` is the step's error; null when it is unknown. */
export function stepNotLoadedText(ensemble: string, step: string, why: string | null): string {
  const text = `ensemble '${ensemble}' depends on '${step}' which has no loaded version`;
  return why === null ? text : `${text}. Model '${step}' loading failed with error: ${why}`;
}
