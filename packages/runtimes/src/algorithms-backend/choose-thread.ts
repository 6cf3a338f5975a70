/** What is known of a thread of algorithms when an order looks for one. */
export interface ThreadState {
  /** What it does now; `slow` when that takes longer than others would wait for it. */
  readonly at: "free" | "busy" | "slow";
  readonly modelCount: number;
}

export interface ThreadCounts {
  /** So many are started before two models share one. */
  readonly spread: number;
  readonly most: number;
}

export type ThreadChoice =
  | { readonly take: "thread"; readonly index: number }
  | { readonly take: "new" }
  | { readonly take: "nothing yet" };

/**
 * The thread for an order of a model that is read in thread `home`, or in none: its own, for which it waits while that does short work. A
 * model whose thread is slow is read again in another, and that is its own from then on.
 */
export function chooseThread(threads: readonly ThreadState[], home: number | null, counts: ThreadCounts): ThreadChoice {
  const own = home === null ? undefined : threads[home];
  if (home !== null && own?.at === "free") return { take: "thread", index: home };
  if (own?.at === "busy") return { take: "nothing yet" };
  const [emptiest] = [...threads.entries()]
    .filter(([, { at }]) => at === "free")
    .toSorted(([, left], [, right]) => left.modelCount - right.modelCount);
  const mayStart = threads.length < counts.most;
  if (emptiest === undefined) return mayStart ? { take: "new" } : { take: "nothing yet" };
  const [index, { modelCount }] = emptiest;
  return modelCount > 0 && threads.length < Math.min(counts.spread, counts.most)
    ? { take: "new" }
    : { take: "thread", index };
}
