import type { OnnxRuntimeOptions, OnnxSessionOptions, OnnxValueInfo } from "../../native/index.ts";

/** A session as the runner that has it tells of it. Handles and addresses are the runner's own. */
export interface RunnerSession {
  readonly handle: number;
  readonly inputs: readonly OnnxValueInfo[];
  readonly outputs: readonly OnnxValueInfo[];
  readonly inputNames: readonly number[];
  readonly outputNames: readonly number[];
  /** The lane that its runs prefer, and the processors that a lane keeps to while it runs it. */
  readonly home: number;
  readonly processors: readonly number[];
}

/** `heldBytes`: memory that the process holds now beyond what it held before it had a session. */
export interface HeldMemory {
  readonly heldBytes: number;
}

/** A session that was just opened. */
export interface LoadedSession extends RunnerSession, HeldMemory {
  /** What opening it took, with what else happened meanwhile. */
  readonly openedBytes: number;
}

/** Everything about a session but what JSON cannot carry. */
export type WireSessionOptions = Omit<OnnxSessionOptions, "config"> & {
  readonly config: readonly (readonly [string, string])[];
};

/**
 * What a runner is asked, and answers, over its control socket, one request at a time or many: none waits for another. With `lane` and
 * `arena` a descriptor has been sent before, over the socket for descriptors.
 */
export interface RunnerCalls {
  /** Opens the library. */
  start: { request: OnnxRuntimeOptions; reply: object };
  /** Starts the lane with this number, at the other end of the socket that was sent. */
  lane: { request: { readonly lane: number }; reply: object };
  /** From now on the lane's runs end at their next operator, or (false) not. */
  terminate: { request: { readonly lane: number; readonly does: boolean }; reply: object };
  /** Maps the memory file that was sent. */
  arena: { request: { readonly arena: number; readonly byteLength: number }; reply: { readonly address: number } };
  /** Undoes the mapping: no run uses it any more. */
  forget: { request: { readonly arena: number }; reply: object };
  load: { request: { readonly session: string; readonly options: WireSessionOptions }; reply: LoadedSession };
  /** Frees a session that no run uses any more. */
  close: { request: { readonly session: string }; reply: HeldMemory };
  /** Gives back what runs have left behind where that is more than so much. */
  settle: { request: { readonly keptBytesMax: number }; reply: HeldMemory };
}

export type RunnerCall = keyof RunnerCalls;

export interface CallMessage {
  readonly id: number;
  readonly call: RunnerCall;
  readonly request: unknown;
}

/** `begun`: the library is about to be given what the call brought; before that it cannot have ended the process. Only of `load`. */
export type ReplyMessage =
  | { readonly id: number; readonly begun: true }
  | { readonly id: number; readonly reply: unknown }
  | { readonly id: number; readonly error: { readonly code: string; readonly message: string } };
