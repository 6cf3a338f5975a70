import type { Readable } from "node:stream";
import type { ByteLease } from "@galatea/base";
import type { OpenedSession } from "./session-headers.ts";

export interface InvocationLimits {
  readonly requestBytesMax: number;
  readonly responseBytesMax: number;
  /**
   * Maximum time of a response in milliseconds. SageMaker gives a container 60 s; this is one second less, so that
   * clients with that read time-out still get the error.
   */
  readonly responseMsMax: number;
  /**
   * Maximum time of a streamed response, from its request to its last chunk, including silent periods: SageMaker gives
   * 8 minutes.
   */
  readonly streamMsMax: number;
  /**
   * Maximum wait of a request while every instance of its variant restarts, or while the platform adopts instances at
   * its start.
   */
  readonly restartWaitMsMax: number;
  /** Maximum number of requests in flight or waiting on one instance; further requests get 503. */
  readonly requestsMax: number;
  /** Maximum number of these requests with a streamed response; further ones get 503. */
  readonly streamsMax: number;
  /** Idle time after which an additional copy of a model is unloaded. */
  readonly modelCopyColdMs: number;
}

export const invocationLimits: InvocationLimits = {
  requestBytesMax: 6_291_456,
  responseBytesMax: 6_291_456,
  responseMsMax: 59_000,
  streamMsMax: 480_000,
  restartWaitMsMax: 20_000,
  requestsMax: 1024,
  streamsMax: 512,
  modelCopyColdMs: 60_000,
};

/** Bodies up to this length are buffered: they take one write to a socket and can be sent again. Longer ones stream. */
export const bufferedBytesMax = 1024 * 1024;

/** Limits of a request without a waiting connection, in place of the configured ones. */
export interface BackgroundInvocationLimits {
  readonly answerMsMax: number;
  readonly responseBytesMax: number;
  /** Called once for each instance that is tried, with the log stream ARN of its first container (empty if there is none). */
  readonly onContainer: (logStreamArn: string) => void;
}

export interface InvocationRequest {
  /** Headers for the container: content-type, accept, custom attributes, ids. Lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  readonly targetModel: string | null;
  /** The request's content length; null for a chunked body. */
  readonly declaredBytes?: number | null;
  readonly targetVariant: string | null;
  /** The inference component whose copies serve the request. */
  readonly inferenceComponent?: string | null;
  /** The container that serves the request, in Direct mode. */
  readonly targetContainer: string | null;
  /** Path on the container in place of /invocations, such as `/v1/chat/completions`. */
  readonly containerPath?: string;
  /** The id of a stateful session, or `newSession`. */
  readonly session?: string;
  /** True for a response in chunks as the container makes them; false for a complete one. */
  readonly isStreamed: boolean;
  /** Called at most once for each instance that is tried, after models are loaded. A Buffer can be sent again. */
  readonly body: () => Promise<Buffer | Readable>;
  /** The caller's memory; buffered bytes of the response are taken from it. */
  readonly memory: ByteLease;
  /** A response with its own bounds streams, and has its own metrics. */
  readonly bounds?: BackgroundInvocationLimits;
  readonly receivedNs: number;
  /** The part of the time limit that the start of a serverless instance has used up. */
  readonly waitedMs?: number;
  readonly signal: AbortSignal;
}

export interface InvocationReply {
  readonly contentType: string | null;
  readonly customAttributes: string | null;
  readonly variantName: string;
  /** The session that the model opened with this response, if any. */
  readonly openedSession: OpenedSession | null;
  readonly closedSession: string | null;
  /** A stream has to be consumed or destroyed. A response in chunks is always a stream. */
  readonly body: Buffer | Readable;
  readonly byteLength: number | null;
  /** The caller calls it once, after `failed` if that applies, when the response was sent to the client or abandoned. */
  readonly done: () => void;
  /** The caller calls it when the first chunk of a streamed response has arrived. */
  readonly onStart: () => void;
  /**
   * Records an error of the body, and converts it for the client: before the first chunk of a streamed response as for
   * any invocation, else as a broken stream.
   */
  readonly failed: (error: unknown) => unknown;
}
