import { InferenceError, type InferenceErrorOptions } from "@galatea/base";
import {
  circularDependencyText,
  noVersionErrorText,
  pollErrorText,
  missingVersionText,
  stepNotLoadedText,
  unavailableStepsText,
} from "../repository/index.ts";
import type { CatalogModel } from "./catalog.ts";

/** Returns Triton's error for a model whose configuration or files could not be read. */
export function pollError(name: string, why: InferenceError): InferenceError {
  return new InferenceError("INTERNAL", pollErrorText(name, why.message), { cause: why, reason: "not-polled" });
}

/** The error of a load that failed for any other reason, with Triton's text. */
export class LoadFailure extends InferenceError {
  /** The message without the prefix that names the model. */
  readonly why: string;

  constructor(name: string, why: string, options?: InferenceErrorOptions) {
    super("INVALID_ARG", `load failed for model '${name}': ${why}\n`, options);
    this.why = why;
  }
}

/** Returns Triton's error for an ensemble that cannot load because one of its steps failed. */
export function stepFailure(ensemble: string, step: string, error: InferenceError): InferenceError {
  const circular = error instanceof CircularDependency ? error : error.cause;
  if (circular instanceof CircularDependency) return circular.seenFrom(ensemble);
  if (error.reason === "not-polled") {
    const text = `${unavailableStepsText(ensemble, [step])}\n${error.message}`;
    return new InferenceError("INVALID_ARG", text, { cause: error });
  }
  const options = { cause: error, reason: error.reason };
  if (error.code === "UNAVAILABLE") {
    const isMemory = error.reason === "out-of-memory";
    return new InferenceError("UNAVAILABLE", isMemory ? error.message : dependsOn(ensemble, step, error), options);
  }
  return new InferenceError("INVALID_ARG", dependsOn(ensemble, step, error), options);
}

function dependsOn(ensemble: string, step: string, error: InferenceError): string {
  const reason = (error instanceof LoadFailure ? error.why : error.message).trimEnd();
  return stepNotLoadedText(ensemble, step, reason);
}

export function missingStepError(ensemble: string, step: string): InferenceError {
  return new InferenceError("INVALID_ARG", stepNotLoadedText(ensemble, step, null));
}

export function missingVersionError(ensemble: string, step: string, version: number): InferenceError {
  return new InferenceError("INVALID_ARG", missingVersionText(ensemble, step, version));
}

/** Returns Triton's error for a model whose version policy selects no directory. */
export function noVersionError({ servedName: name, misnamedVersions }: CatalogModel): InferenceError {
  return new LoadFailure(name, noVersionErrorText(name, misnamedVersions));
}

/** The error for an ensemble that uses itself, directly or through other ensembles. */
export class CircularDependency extends InferenceError {
  readonly circle: readonly string[];

  /** `circle` lists the ensembles of the cycle; it begins and ends with the same name. */
  constructor(circle: readonly string[]) {
    super("INVALID_ARG", circularDependencyText(circle));
    this.circle = circle;
  }

  /** Returns this error with the cycle starting at `name`; returns it unchanged if `name` is not part of the cycle. */
  seenFrom(name: string): CircularDependency {
    const at = this.circle.indexOf(name);
    if (at <= 0) return this;
    const members = this.circle.slice(1);
    return new CircularDependency([name, ...members.slice(at), ...members.slice(0, at)]);
  }
}
