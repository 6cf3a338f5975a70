import type { InferenceCode, InferenceReason } from "@galatea/base";
import type { Engine, ModelTarget, ModelView } from "../../engine/index.ts";
import type { RequestHead, ResponseHead } from "../../inference/index.ts";
import type { ArenaRange, TensorHead } from "../../tensor/index.ts";

/** Where a tensor's elements lie: a range of a block that the receiver can see, or the bytes themselves where they are in no block. */
export type DataMessage =
  | { readonly block: ArenaRange; readonly byteOffset: number; readonly byteLength: number }
  | { readonly bytes: Uint8Array };

/** A tensor on its way: the receiver owns a reference to its block from here on. */
export interface TensorMessage extends TensorHead {
  readonly data: DataMessage;
}

export interface ErrorMessage {
  readonly code: InferenceCode;
  readonly message: string;
  readonly reason: InferenceReason | null;
}

export type OutcomeMessage =
  | { readonly head: ResponseHead; readonly outputs: readonly TensorMessage[] }
  | { readonly error: ErrorMessage };

/** Verbs of the engine whose arguments and results are plain data. */
export type PlainMethod =
  | "serverMetadata"
  | "modelMetadata"
  | "statistics"
  | "repositoryIndex"
  | "loadModel"
  | "unloadModel"
  | "openNamespace"
  | "closeNamespace"
  | "memory";

/** All that a front end says to the engine. Ids are the front end's, each used once. */
export type ToEngine =
  /** Answered by a `value` or an `error`; one that can be given up says so. */
  | {
      readonly kind: "call";
      readonly callId: number;
      readonly method: PlainMethod;
      readonly values: readonly unknown[];
    }
  | { readonly kind: "state"; readonly callId: number }
  /** Answered by a `value`, a Lease. */
  | { readonly kind: "open"; readonly callId: number; readonly target: ModelTarget }
  | { readonly kind: "close"; readonly leaseId: number }
  /** Answered by a `value`: the bytes in use where the model's tensors are best put, null where that is nowhere. */
  | { readonly kind: "arena"; readonly callId: number; readonly leaseId: number }
  /** Answered by a `value`, the place of a block to which the front end has a reference. */
  | { readonly kind: "allocate"; readonly callId: number; readonly leaseId: number; readonly byteLength: number }
  /** Gives a reference back. */
  | { readonly kind: "release"; readonly place: ArenaRange }
  /** Answered by `answer`s, and by one `over` behind them. */
  | {
      readonly kind: "infer";
      readonly requestId: number;
      readonly leaseId: number;
      readonly head: RequestHead;
      readonly inputs: readonly TensorMessage[];
      /** Whether it may have any number of answers. */
      readonly isStream: boolean;
    }
  /** Nobody waits any more for the request, or the call, of this id. */
  | { readonly kind: "cancel"; readonly id: number }
  /** An answer has left: credit for another. */
  | { readonly kind: "taken"; readonly requestId: number; readonly answerId: number };

/** All that the engine says to a front end. */
export type ToFrontEnd =
  | { readonly kind: "value"; readonly callId: number; readonly value: unknown }
  | { readonly kind: "error"; readonly callId: number; readonly error: ErrorMessage }
  | {
      readonly kind: "answer";
      readonly requestId: number;
      readonly answerId: number;
      readonly outcome: OutcomeMessage | null;
      readonly isFinal: boolean;
    }
  | { readonly kind: "over"; readonly requestId: number };

/** A model that is held for a call. */
export interface Lease {
  readonly leaseId: number;
  readonly view: ModelView;
  readonly isHealthy: boolean;
}

export type ServerState = Pick<Engine, "live" | "ready">;
