import { InferenceError, type InferenceErrorOptions } from "@galatea/base";
import {
  circularText,
  noVersionText,
  notPolledText,
  requiredVersionText,
  stepNotLoadedText,
  unavailableStepsText,
} from "../repository/index.ts";
import type { CatalogModel } from "./catalog.ts";

/** Returns Triton's error for a model that could not be polled. */
export function notPolled(name: string, why: InferenceError): InferenceError {
  return new InferenceError("INTERNAL", notPolledText(name, why.message), { cause: why, reason: "not-polled" });
}

/** A load that failed for any other reason, with Triton's text. */
export class LoadFailure extends InferenceError {
  /** The text after the model's name. */
  readonly why: string;

  constructor(name: string, why: string, options?: InferenceErrorOptions) {
    super("INVALID_ARG", `load failed for model '${name}': ${why}\n`, options);
    this.why = why;
  }
}

/** Returns Triton's error for an ensemble whose step is unusable. */
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

export function stepAbsent(ensemble: string, step: string): InferenceError {
  return new InferenceError("INVALID_ARG", stepNotLoadedText(ensemble, step, null));
}

export function requiredVersionAbsent(ensemble: string, step: string, version: number): InferenceError {
  return new InferenceError("INVALID_ARG", requiredVersionText(ensemble, step, version));
}

/** Returns Triton's error for a model whose version policy selects no directory. */
export function noVersionSelected({ servedName: name, misnamedVersions }: CatalogModel): InferenceError {
  return new LoadFailure(name, noVersionText(name, misnamedVersions));
}

/** An ensemble that is its own step, directly or through others. */
export class CircularDependency extends InferenceError {
  readonly circle: readonly string[];

  /** `circle` begins and ends with the same name. */
  constructor(circle: readonly string[]) {
    super("INVALID_ARG", circularText(circle));
    this.circle = circle;
  }

  /** Returns the same circle beginning at one of its members; unchanged for an ensemble outside of it. */
  seenFrom(name: string): CircularDependency {
    const at = this.circle.indexOf(name);
    if (at <= 0) return this;
    const members = this.circle.slice(1);
    return new CircularDependency([name, ...members.slice(at), ...members.slice(0, at)]);
  }
}
