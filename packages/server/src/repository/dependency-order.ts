import { circularDependencyText, stepNotLoadedText, unavailableStepsText } from "./failure-texts.ts";

/**
 * Models sorted by their dependencies. The steps of every model in `rounds` are in earlier rounds. `failures` maps each model that is in no
 * round to the reason.
 */
export interface DependencyOrder {
  readonly rounds: readonly (readonly string[])[];
  readonly failures: ReadonlyMap<string, string>;
}

/**
 * Sorts models by their dependencies. `steps` maps every model to the models that its ensemble needs (none for others). Within a round,
 * models are sorted by name. The reasons of failures are Triton's texts.
 */
export function dependencyOrder(steps: ReadonlyMap<string, readonly string[]>): DependencyOrder {
  const failures = new Map<string, string>();
  const placed = new Set<string>();
  const rounds: string[][] = [];
  const names = [...steps.keys()].sort();
  for (const name of names) {
    const missing = [...new Set(steps.get(name)!.filter((step) => !steps.has(step)))];
    if (missing.length > 0) {
      failures.set(name, unavailableStepsText(name, missing));
    }
  }
  for (;;) {
    const round = names.filter(
      (name) => !placed.has(name) && !failures.has(name) && steps.get(name)!.every((step) => placed.has(step)),
    );
    if (round.length === 0) break;
    for (const name of round) placed.add(name);
    rounds.push(round);
  }
  const isLeft = (name: string) => !placed.has(name) && !failures.has(name);
  const circular = new Set<string>();
  for (const name of names.filter(isLeft)) {
    const circle = circleThrough(name, steps);
    if (circle === null) continue;
    failures.set(name, circularDependencyText(circle));
    circular.add(name);
  }
  // Each remaining model depends, directly or through others, on a model that failed.
  for (let left = names.filter(isLeft); left.length > 0; left = left.filter(isLeft)) {
    for (const name of left) {
      const step = steps.get(name)!.find((each) => failures.has(each));
      if (step === undefined) continue;
      const why = failures.get(step)!;
      failures.set(name, circular.has(step) ? why : stepNotLoadedText(name, step, why));
      if (circular.has(step)) circular.add(name);
    }
  }
  return { rounds, failures };
}

/** Returns the shortest dependency cycle of a model, which begins and ends with the model; null if there is none. */
function circleThrough(name: string, steps: ReadonlyMap<string, readonly string[]>): readonly string[] | null {
  const cameFrom = new Map<string, string>();
  let edge = [name];
  while (edge.length > 0) {
    const next: string[] = [];
    for (const at of edge) {
      for (const step of steps.get(at) ?? []) {
        if (step === name) return [...pathTo(at, name, cameFrom), name];
        if (cameFrom.has(step)) continue;
        cameFrom.set(step, at);
        next.push(step);
      }
    }
    edge = next;
  }
  return null;
}

function pathTo(end: string, start: string, cameFrom: ReadonlyMap<string, string>): readonly string[] {
  const path = [end];
  while (path[0] !== start) path.unshift(cameFrom.get(path[0]!)!);
  return path;
}
