import type { ModelEntry } from "./model-entry.ts";

/** The ensembles that stand on a model, near or far, each after every one of them that it stands on itself. */
export function ensemblesAbove(model: ModelEntry): readonly ModelEntry[] {
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

/** The way from an ensemble through its steps back to itself, null when there is none. `stepsOf` knows the steps of the others. */
export function circleOf(
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
