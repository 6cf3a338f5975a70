/** The state of a thread, from which `chooseThread` selects the thread of a command. */
export interface ThreadState {
  /** `slow`: its running command has taken longer than `slowAfterMs`, so other models no longer wait for it. */
  readonly state: "free" | "busy" | "slow";
  readonly modelCount: number;
}

export interface ThreadCounts {
  /** Number of threads that are started before two models share one. */
  readonly spread: number;
  readonly most: number;
}

export type ThreadChoice =
  | { readonly take: "thread"; readonly index: number }
  | { readonly take: "new" }
  | { readonly take: "wait" };

/**
 * Chooses the thread for a command of a model. `home` is the index of the thread in which the model is loaded, or null. The command waits
 * while its home thread is busy. If the home thread is slow, the command gets another thread, in which the model is loaded again.
 */
export function chooseThread(threads: readonly ThreadState[], home: number | null, counts: ThreadCounts): ThreadChoice {
  const own = home === null ? undefined : threads[home];
  if (home !== null && own?.state === "free") return { take: "thread", index: home };
  if (own?.state === "busy") return { take: "wait" };
  const [emptiest] = [...threads.entries()]
    .filter(([, { state }]) => state === "free")
    .toSorted(([, left], [, right]) => left.modelCount - right.modelCount);
  const mayStart = threads.length < counts.most;
  if (emptiest === undefined) return mayStart ? { take: "new" } : { take: "wait" };
  const [index, { modelCount }] = emptiest;
  return modelCount > 0 && threads.length < Math.min(counts.spread, counts.most)
    ? { take: "new" }
    : { take: "thread", index };
}
