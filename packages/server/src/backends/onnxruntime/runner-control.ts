import type { OnnxRuntimeOptions, OnnxSessionOptions, OnnxValueInfo } from "../../native/index.ts";

/** A session as the runner describes it. Handles and addresses are valid in the runner's process. */
export interface RunnerSession {
  readonly handle: number;
  readonly inputs: readonly OnnxValueInfo[];
  readonly outputs: readonly OnnxValueInfo[];
  readonly inputNames: readonly number[];
  readonly outputNames: readonly number[];
  /** Number of the run thread that the session's runs prefer, and the processors to which a run thread is pinned during these runs. */
  readonly home: number;
  readonly processors: readonly number[];
}

/** Memory of the process in bytes, without the memory that it had before its first session. */
export interface RunnerMemoryUsage {
  readonly heldBytes: number;
}

/** A session that the runner has just opened. */
export interface LoadedSession extends RunnerSession, RunnerMemoryUsage {
  /** Growth of the process's memory in bytes while the session was opened, including concurrent changes. */
  readonly openedBytes: number;
}

/** Session options in a form that JSON can represent. */
export type WireSessionOptions = Omit<OnnxSessionOptions, "config"> & {
  readonly config: readonly (readonly [string, string])[];
};

/**
 * Calls that a runner receives over its control socket and handles concurrently. For `thread` and `arena`, a file descriptor is sent first
 * over the descriptor socket.
 */
export interface RunnerCalls {
  /** Opens the ONNX Runtime library. */
  start: { request: OnnxRuntimeOptions; reply: object };
  /** Starts the run thread with this number. The file descriptor is the run thread's end of a socket pair. */
  thread: { request: { readonly thread: number }; reply: object };
  /** Makes runs of the run thread end at their next operator (true), or lets them run to their end (false). */
  terminate: { request: { readonly thread: number; readonly does: boolean }; reply: object };
  /** Maps an arena. The file descriptor is its memory file. */
  arena: { request: { readonly arena: number; readonly byteLength: number }; reply: { readonly address: number } };
  /** Unmaps an arena that no run uses any more. */
  forget: { request: { readonly arena: number }; reply: object };
  load: { request: { readonly session: string; readonly options: WireSessionOptions }; reply: LoadedSession };
  /** Frees a session that no run uses any more. */
  close: { request: { readonly session: string }; reply: RunnerMemoryUsage };
  /** Releases the memory that runs have not released, if it exceeds `keptBytesMax`. */
  settle: { request: { readonly keptBytesMax: number }; reply: RunnerMemoryUsage };
}

export type RunnerCall = keyof RunnerCalls;

export interface CallMessage {
  readonly id: number;
  readonly call: RunnerCall;
  readonly request: unknown;
}

/**
 * A reply. For `load`, `begun` is sent first: the library is about to read the model. Before `begun`, the call cannot have crashed the
 * process.
 */
export type ReplyMessage =
  | { readonly id: number; readonly begun: true }
  | { readonly id: number; readonly reply: unknown }
  | { readonly id: number; readonly error: { readonly code: string; readonly message: string } };
