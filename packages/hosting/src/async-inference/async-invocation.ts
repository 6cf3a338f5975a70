import { assert, unreachable } from "@galatea/base";

/** Where bytes lie in S3. */
export interface ObjectPlace {
  readonly bucket: string;
  readonly key: string;
}

export type AsyncInput =
  | { readonly at: "object"; readonly url: string; readonly place: ObjectPlace }
  /** With the request, and in a record of its own. */
  | { readonly at: "record"; readonly byteLength: number };

/** The endpoint that a request was accepted for: another one of its name is not meant. */
export interface QueuedEndpoint {
  readonly name: string;
  readonly createdMs: number;
  readonly accountId: string;
  readonly region: string;
}

export interface ResultTopics {
  readonly success: string | null;
  readonly error: string | null;
  /** In whose messages the answer itself is wanted. */
  readonly includesIn: { readonly success: boolean; readonly error: boolean };
}

/** A request that was accepted, with all that is to be known of it when its endpoint is another one or gone. */
export interface AsyncInvocation {
  readonly inferenceId: string;
  readonly endpoint: QueuedEndpoint;
  /** The endpoint's, when it was accepted. */
  readonly variantName: string;
  readonly receivedMs: number;
  /** It fails that has not begun by then. */
  readonly expiresMs: number;
  readonly timeLimitMs: number;
  /** What goes to the container, by lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  readonly input: AsyncInput;
  readonly output: ObjectPlace | null;
  readonly failure: ObjectPlace | null;
  readonly topics: ResultTopics;
  /** How often a container ended while it ran it. */
  readonly lostCount: number;
}

/** Why a request has failed, in the words of its notification, and what is written to its failure object. */
export interface AsyncFailure {
  readonly reason: string;
  readonly text: string;
  /** What its line in the log says, where that is more. */
  readonly logged?: string;
}

/** What becomes of an accepted request. Only a waiting one is recorded: whatever else was under way when a platform ended, waits again. */
export type AsyncLife =
  | { readonly at: "waiting"; readonly lostCount: number }
  | { readonly at: "running"; readonly lostCount: number; readonly sinceMs: number }
  | { readonly at: "completed" }
  | { readonly at: "failed"; readonly failure: AsyncFailure }
  | { readonly at: "expired" };

export type AsyncEvent =
  | { readonly kind: "taken"; readonly nowMs: number; readonly expiresMs: number }
  /** Its answer is stored. */
  | { readonly kind: "answered" }
  | { readonly kind: "refused"; readonly failure: AsyncFailure }
  /** The container ended under it. */
  | { readonly kind: "lost"; readonly failure: AsyncFailure }
  /** Nothing is wrong with it: the platform ends, a disk is full for a while, or there is no memory just now. */
  | { readonly kind: "interrupted" }
  /** There will be no instance for it. */
  | { readonly kind: "orphaned" };

/** A request that ends each container it comes to is not taken through all there will ever be. */
export const lostCountMax = 3;

/** Every move of an accepted request. */
export function moveAsync(life: AsyncLife, event: AsyncEvent): AsyncLife {
  switch (event.kind) {
    case "taken":
      assert(life.at === "waiting", `taken while ${life.at}`);
      if (event.nowMs >= event.expiresMs) return { at: "expired" };
      return { at: "running", lostCount: life.lostCount, sinceMs: event.nowMs };
    case "answered":
      assert(life.at === "running", `answered while ${life.at}`);
      return { at: "completed" };
    case "refused":
      assert(life.at === "running", `refused while ${life.at}`);
      return { at: "failed", failure: event.failure };
    case "lost": {
      assert(life.at === "running", `lost while ${life.at}`);
      const lostCount = life.lostCount + 1;
      return lostCount >= lostCountMax ? { at: "failed", failure: event.failure } : { at: "waiting", lostCount };
    }
    case "interrupted":
      assert(life.at === "running", `interrupted while ${life.at}`);
      return { at: "waiting", lostCount: life.lostCount };
    case "orphaned":
      assert(life.at === "waiting", `orphaned while ${life.at}`);
      return { at: "failed", failure: orphaned };
    default:
      return unreachable(event);
  }
}

const orphaned: AsyncFailure = {
  reason: "ClientError: The endpoint was deleted before the request was processed.",
  text: "The endpoint was deleted before the request was processed.",
};

export const expiredFailure: AsyncFailure = {
  reason: "ClientError: The request expired: it was in the queue for longer than its RequestTTLSeconds.",
  text: "The request expired: it was in the queue for longer than its RequestTTLSeconds.",
};
