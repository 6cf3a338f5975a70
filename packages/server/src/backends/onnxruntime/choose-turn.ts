export interface TurnLimits {
  /** Runs at once that have not become long. */
  readonly slotCount: number;
  /** From then on a run is long and has no slot any more: it keeps a thread and its share of the processors, and nobody waits for it. */
  readonly longNs: number;
  /** Runs at once of one model, and of one tenant, long ones included. */
  readonly modelRunsMax: number;
  readonly tenantRunsMax: number;
  /** Runs at once of all. */
  readonly runsMax: number;
}

/** Whose run it is: a model of a tenant. */
export interface RunOwner {
  readonly tenant: number;
  readonly model: string;
}

export interface RunningTurn {
  readonly owner: RunOwner;
  readonly sinceNs: number;
}

export interface WaitingOwner<Owner extends RunOwner> {
  readonly owner: Owner;
  /** Time that the tenant's runs have taken so far, those under way not included. */
  readonly usedNs: number;
}

export interface TurnState<Owner extends RunOwner> {
  readonly running: Iterable<RunningTurn>;
  /** Those that wait, each once, in order of arrival. */
  readonly waiting: Iterable<WaitingOwner<Owner>>;
  readonly nowNs: number;
}

/** `later`: nobody may begin now; look again at that time, or (null) when a run has ended. */
export type TurnChoice<Owner extends RunOwner> =
  | { readonly kind: "admit"; readonly owner: Owner }
  | { readonly kind: "later"; readonly atNs: number | null };

/**
 * Whose run begins next: of the models that may have one more, one of the tenant whose runs have taken the least time, those under way
 * included; of equals the one that came first.
 */
export function chooseTurn<Owner extends RunOwner>(
  { running, waiting, nowNs }: TurnState<Owner>,
  limits: TurnLimits,
): TurnChoice<Owner> {
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
