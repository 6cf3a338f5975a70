import type { Logger } from "@galatea/base";
import { allJson, type DocumentChange, type Documents } from "../records/index.ts";
import type { ScaledBefore } from "./capacity.ts";
import type { ScalableTarget, ScalingActivity, ScalingPolicy, ScheduledAction } from "./policy.ts";

/** A scalable target with its policies, what it last did, and what it has done. */
export interface ScalingRecord {
  readonly target: ScalableTarget;
  readonly policies: readonly ScalingPolicy[];
  readonly scheduled: readonly ScheduledAction[];
  /** Whether the capacity is to go into the bounds that were set last: until it has, or that has failed. */
  readonly correcting: Correction | null;
  readonly lastOut: ScaledBefore | null;
  readonly lastIn: ScaledBefore | null;
  /** Oldest first. */
  readonly activities: readonly ScalingActivity[];
}

export interface Correction {
  /** The scheduled action that set the bounds; null for a person. */
  readonly actionName: string | null;
  /** Null before the change of the capacity has begun. */
  readonly activityId: string | null;
}

const kind = "scalable-target";

/** Scalable targets as documents, by resource and dimension. */
export class ScalingStore {
  readonly #documents: Documents;
  readonly #logger: Logger;

  constructor({ documents, logger }: { readonly documents: Documents; readonly logger: Logger }) {
    this.#documents = documents;
    this.#logger = logger;
  }

  async all(): Promise<readonly ScalingRecord[]> {
    const all: ScalingRecord[] = [];
    for await (const { value } of allJson<ScalingRecord>(this.#documents, kind, { logger: this.#logger }))
      all.push(value);
    return all;
  }

  async put(record: ScalingRecord): Promise<void> {
    const key = keyOf(record.target);
    const change: DocumentChange = { do: "put", kind, key, body: JSON.stringify(record), expects: "any" };
    await this.#documents.write([change]);
  }

  async delete(target: TargetKey): Promise<void> {
    await this.#documents.write([{ do: "delete", kind, key: keyOf(target), expects: "any" }]);
  }
}

export interface TargetKey {
  readonly resourceId: string;
  readonly dimension: string;
}

export function keyOf({ resourceId, dimension }: TargetKey): string {
  return `${resourceId} ${dimension}`;
}
