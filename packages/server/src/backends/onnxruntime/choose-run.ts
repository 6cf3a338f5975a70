export interface RunLimits {
  /** Maximum number of concurrent runs, not counting long ones. */
  readonly slotCount: number;
  /**
   * Age in nanoseconds at which a run counts as long. A long run no longer occupies a slot, so that other runs do not wait for it. It keeps
   * its thread and competes for processors.
   */
  readonly longNs: number;
  /** Maximum number of concurrent runs of one model, and of one tenant, long ones included. */
  readonly modelRunsMax: number;
  readonly tenantRunsMax: number;
  /** Maximum number of concurrent runs in total, long ones included. */
  readonly runsMax: number;
}

/** The model, and its tenant, to which a run belongs. */
export interface RunOwner {
  readonly tenant: number;
  readonly model: string;
}

export interface ActiveRun {
  readonly owner: RunOwner;
  readonly sinceNs: number;
}

export interface WaitingOwner<Owner extends RunOwner> {
  readonly owner: Owner;
  /** Total duration of the tenant's completed runs, in nanoseconds. */
  readonly usedNs: number;
}

export interface RunQueueState<Owner extends RunOwner> {
  readonly running: Iterable<ActiveRun>;
  /** Owners with waiting runs, each once, in order of arrival. */
  readonly waiting: Iterable<WaitingOwner<Owner>>;
  readonly nowNs: number;
}

/** `later` means that no run may start now. The caller must choose again at the given time, or, if it is null, when a run has ended. */
export type RunChoice<Owner extends RunOwner> =
  | { readonly kind: "admit"; readonly owner: Owner }
  | { readonly kind: "later"; readonly atNs: number | null };

/**
 * Chooses the next run. Among the models below their limit, chooses the one whose tenant has used the least time, including current runs.
 * Among equals, chooses the one that arrived first.
 */
export function chooseRun<Owner extends RunOwner>(
  { running, waiting, nowNs }: RunQueueState<Owner>,
  limits: RunLimits,
): RunChoice<Owner> {
  const tenants = new Map<number, { count: number; ns: number }>();
  const models = new Map<string, number>();
  let runCount = 0;
  let shortCount = 0;
  let oldestShortNs = Number.POSITIVE_INFINITY;
  for (const { owner, sinceNs } of running) {
    const its = tenants.get(owner.tenant) ?? { count: 0, ns: 0 };
    tenants.set(owner.tenant, { count: its.count + 1, ns: its.ns + nowNs - sinceNs });
    models.set(nameOf(owner), (models.get(nameOf(owner)) ?? 0) + 1);
    runCount += 1;
    if (nowNs - sinceNs >= limits.longNs) continue;
    shortCount += 1;
    oldestShortNs = Math.min(oldestShortNs, sinceNs);
  }
  let best: { owner: Owner; ns: number } | null = null;
  for (const { owner, usedNs } of waiting) {
    const its = tenants.get(owner.tenant);
    if (its !== undefined && its.count >= limits.tenantRunsMax) continue;
    if ((models.get(nameOf(owner)) ?? 0) >= limits.modelRunsMax) continue;
    const ns = usedNs + (its?.ns ?? 0);
    if (best === null || ns < best.ns) best = { owner, ns };
  }
  if (best === null || runCount >= limits.runsMax) return { kind: "later", atNs: null };
  if (shortCount >= limits.slotCount) return { kind: "later", atNs: oldestShortNs + limits.longNs };
  return { kind: "admit", owner: best.owner };
}

function nameOf({ tenant, model }: RunOwner): string {
  return `${tenant} ${model}`;
}
