/** The state of a thread of algorithms for the assignment of orders. */
export interface ThreadState {
  /** `slow`: its command has taken longer than others would wait for it. */
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
 * Chooses the thread for a command of a model that is loaded in thread `home`, or in none. The command waits for its own thread while that
 * is busy. A model whose thread is slow is loaded again in another, which becomes its own.
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
