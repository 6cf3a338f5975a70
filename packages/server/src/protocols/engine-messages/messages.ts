import type { InferenceCode, InferenceReason } from "@galatea/base";
import type { Engine, ModelTarget, ModelView } from "../../engine/index.ts";
import type { RequestHead, ResponseHead } from "../../inference/index.ts";
import type { ArenaRange, TensorHead } from "../../tensor/index.ts";

/** The elements of a tensor: a range of a block that the receiver has mapped, or a copy of bytes that are not in a block. */
export type DataMessage =
  | { readonly block: ArenaRange; readonly byteOffset: number; readonly byteLength: number }
  | { readonly bytes: Uint8Array };

/** A tensor in a message. The receiver becomes the owner of the reference to its block. */
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

/** Methods of the engine whose arguments and results are plain data. */
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

/** The messages from a front end to the engine. A front end never reuses an id. */
export type ToEngine =
  /** Calls a method; the engine replies with `value` or `error`. Loads can be cancelled. */
  | {
      readonly kind: "call";
      readonly callId: number;
      readonly method: PlainMethod;
      readonly values: readonly unknown[];
    }
  | { readonly kind: "state"; readonly callId: number }
  /** Leases a model; the engine replies with `value`, a Lease. */
  | { readonly kind: "open"; readonly callId: number; readonly target: ModelTarget }
  | { readonly kind: "close"; readonly leaseId: number }
  /**
   * Queries the memory for the model's tensors. The engine replies with `value`: the number of bytes in use, or null if the model has no
   * such memory.
   */
  | { readonly kind: "arena"; readonly callId: number; readonly leaseId: number }
  /** Allocates a block. The engine replies with `value`, the range of the block, to which the front end then has a reference. */
  | { readonly kind: "allocate"; readonly callId: number; readonly leaseId: number; readonly byteLength: number }
  /** Releases a reference to a block. */
  | { readonly kind: "release"; readonly place: ArenaRange }
  /** Runs a request; the engine replies with any number of `answer` messages, then one `over`. */
  | {
      readonly kind: "infer";
      readonly requestId: number;
      readonly leaseId: number;
      readonly head: RequestHead;
      readonly inputs: readonly TensorMessage[];
      /** True for a decoupled model, which may send any number of responses. */
      readonly isStream: boolean;
    }
  /** Cancels the request or call with this id. */
  | { readonly kind: "cancel"; readonly id: number }
  /** Acknowledges a response, so that the model may send another one. */
  | { readonly kind: "taken"; readonly requestId: number; readonly answerId: number };

/** The messages from the engine to a front end. */
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

/** A model that is leased for a call. */
export interface Lease {
  readonly leaseId: number;
  readonly view: ModelView;
  readonly isHealthy: boolean;
}

export type ServerState = Pick<Engine, "live" | "ready">;
