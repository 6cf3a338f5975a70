import { InferenceError } from "../base/index.ts";
import { circularText } from "../repository/index.ts";

/** Triton's sentence for whatever keeps a model from being looked at: it hides the reason, ours follows it. */
export const notPolled = (name: string) => `failed to load '${name}', failed to poll from model repository`;

/** What Triton puts in front of every other reason. */
export const loadFailed = (name: string) => `load failed for model '${name}': `;

/** Why an ensemble cannot have its step, in Triton's words. */
export function stepFailure(ensemble: string, step: string, error: InferenceError): InferenceError {
  const circular = error instanceof CircularDependency ? error : error.cause;
  if (circular instanceof CircularDependency) return circular.seenFrom(ensemble);
  const options = { cause: error, reason: error.reason };
  if (error.code === "UNAVAILABLE") {
    const isMemory = error.reason === "out-of-memory";
    return new InferenceError("UNAVAILABLE", isMemory ? error.message : dependsOn(ensemble, step, error), options);
  }
  if (error.message.startsWith(notPolled(step))) {
    const text = `ensemble ${ensemble} contains models that are not available or ambiguous: ${step}`;
    return new InferenceError("INVALID_ARG", `${text}\n${error.message}`, options);
  }
  return new InferenceError("INVALID_ARG", dependsOn(ensemble, step, error), options);
}

function dependsOn(ensemble: string, step: string, error: InferenceError): string {
  const prefix = loadFailed(step);
  const reason = (error.message.startsWith(prefix) ? error.message.slice(prefix.length) : error.message).trimEnd();
  return `ensemble '${ensemble}' depends on '${step}' which has no loaded version. Model '${step}' loading failed with error: ${reason}`;
}

export function stepAbsent(ensemble: string, step: string): InferenceError {
  return new InferenceError("INVALID_ARG", `ensemble '${ensemble}' depends on '${step}' which has no loaded version`);
}

export function requiredVersionAbsent(ensemble: string, step: string, version: number): InferenceError {
  return new InferenceError(
    "INVALID_ARG",
    `ensemble '${ensemble}' depends on '${step}' whose required version ${version} is not loaded.`,
  );
}

/** No directory of the model is one that its policy wants. */
export function noVersionWanted(model: string): InferenceError {
  const reason = `at least one version must be available under the version policy of model '${model}'`;
  return new InferenceError("INVALID_ARG", `${loadFailed(model)}${reason}\n`);
}

/** An ensemble is a step of its own, through others or directly. */
export class CircularDependency extends InferenceError {
  readonly circle: readonly string[];

  /** `circle` begins and ends with the same name. */
  constructor(circle: readonly string[]) {
    super("INVALID_ARG", circularText(circle));
    this.circle = circle;
  }

  /** The same circle, told from one of its members on; as it is for an ensemble outside of it. */
  seenFrom(name: string): CircularDependency {
    const at = this.circle.indexOf(name);
    if (at <= 0) return this;
    const members = this.circle.slice(1);
    return new CircularDependency([name, ...members.slice(at), ...members.slice(0, at)]);
  }
}
