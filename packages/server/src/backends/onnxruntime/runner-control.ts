import type { OnnxRuntimeOptions, OnnxSessionOptions, OnnxValueInfo } from "../../native/index.ts";

/** A session as its runner describes it. Handles and addresses are the runner's own. */
export interface RunnerSession {
  readonly handle: number;
  readonly inputs: readonly OnnxValueInfo[];
  readonly outputs: readonly OnnxValueInfo[];
  readonly inputNames: readonly number[];
  readonly outputNames: readonly number[];
  /** The lane that its runs prefer, and the processors to which a lane is pinned while it runs it. */
  readonly home: number;
  readonly processors: readonly number[];
}

/** `heldBytes`: memory of the process, over that of a process without a session. */
export interface RunnerMemoryUsage {
  readonly heldBytes: number;
}

/** A session that was just opened. */
export interface LoadedSession extends RunnerSession, RunnerMemoryUsage {
  /** Memory that opening it took, including concurrent changes. */
  readonly openedBytes: number;
}

/** Session options in a form that JSON can represent. */
export type WireSessionOptions = Omit<OnnxSessionOptions, "config"> & {
  readonly config: readonly (readonly [string, string])[];
};

/**
 * Requests and responses of a runner's control socket; requests run concurrently. For `lane` and `arena` a descriptor is sent before,
 * over the descriptor socket.
 */
export interface RunnerCalls {
  /** Opens the library. */
  start: { request: OnnxRuntimeOptions; reply: object };
  /** Starts the lane with this number at the other end of the socket that was sent. */
  lane: { request: { readonly lane: number }; reply: object };
  /** Makes the lane's runs end at their next operator (true), or not (false). */
  terminate: { request: { readonly lane: number; readonly does: boolean }; reply: object };
  /** Maps the memory file that was sent. */
  arena: { request: { readonly arena: number; readonly byteLength: number }; reply: { readonly address: number } };
  /** Unmaps an arena that no run uses any more. */
  forget: { request: { readonly arena: number }; reply: object };
  load: { request: { readonly session: string; readonly options: WireSessionOptions }; reply: LoadedSession };
  /** Frees a session that no run uses any more. */
  close: { request: { readonly session: string }; reply: RunnerMemoryUsage };
  /** Releases the memory that runs left behind if there is more than this. */
  settle: { request: { readonly keptBytesMax: number }; reply: RunnerMemoryUsage };
}

export type RunnerCall = keyof RunnerCalls;

export interface CallMessage {
  readonly id: number;
  readonly call: RunnerCall;
  readonly request: unknown;
}

/** `begun`: the library is about to receive the call's data; before that the call cannot have crashed the process. Only for `load`. */
export type ReplyMessage =
  | { readonly id: number; readonly begun: true }
  | { readonly id: number; readonly reply: unknown }
  | { readonly id: number; readonly error: { readonly code: string; readonly message: string } };
