/**
 * The order in which models depend on each other. `rounds` have the models whose steps are all in earlier rounds; `failures` have the
 * reasons of models in no round.
 */
export interface DependencyOrder {
  readonly rounds: readonly (readonly string[])[];
  readonly failures: ReadonlyMap<string, string>;
}

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

/**
 * Orders models. `steps`: every model with the models that its ensemble needs (none for others). Texts are Triton's; models are ordered
 * by name.
 */
export function dependencyOrder(steps: ReadonlyMap<string, readonly string[]>): DependencyOrder {
  const failures = new Map<string, string>();
  const placed = new Set<string>();
  const rounds: string[][] = [];
  const names = [...steps.keys()].sort();
  for (const name of names) {
    const missing = [...new Set(steps.get(name)!.filter((step) => !steps.has(step)))];
    if (missing.length > 0) {
      failures.set(name, `ensemble ${name} contains models that are not available or ambiguous: ${missing.join(", ")}`);
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
  for (const name of names) {
    if (placed.has(name) || failures.has(name)) continue;
    const circle = circleThrough(name, steps);
    if (circle !== null) failures.set(name, circularText(circle));
  }
  for (const name of names) {
    if (placed.has(name) || failures.has(name)) continue;
    const step = steps.get(name)!.find((each) => !placed.has(each))!;
    failures.set(name, `ensemble '${name}' depends on '${step}' which has no loaded version`);
  }
  return { rounds, failures };
}

/** Returns the shortest path from a model back to itself; null when there is none. */
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
