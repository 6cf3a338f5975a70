import type { ModelEntry } from "./model-entry.ts";

/** Returns the ensembles that use a model, directly or through other ensembles, sorted so that each follows the ensembles that it uses. */
export function dependentEnsembles(model: ModelEntry): readonly ModelEntry[] {
  const above: ModelEntry[] = [];
  const visited = new Set<ModelEntry>();
  const visit = (entry: ModelEntry): void => {
    for (const ensemble of entry.dependents) {
      if (visited.has(ensemble)) continue;
      visited.add(ensemble);
      visit(ensemble);
      above.unshift(ensemble);
    }
  };
  visit(model);
  return above;
}

/**
 * Returns a cycle of ensembles that begins and ends with `name`; null when there is none. `stepsOf` returns the steps of other ensembles.
 */
export function dependencyCycle(
  name: string,
  steps: readonly string[],
  stepsOf: (name: string) => readonly string[],
): readonly string[] | null {
  const visited = new Set<string>();
  const follow = (path: readonly string[], next: readonly string[]): readonly string[] | null => {
    for (const step of next) {
      if (step === name) return [...path, step];
      if (visited.has(step)) continue;
      visited.add(step);
      const circle = follow([...path, step], stepsOf(step));
      if (circle !== null) return circle;
    }
    return null;
  };
  return follow([name], steps);
}
