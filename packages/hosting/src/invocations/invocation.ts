import type { Readable } from "node:stream";
import type { ByteLease } from "@galatea/base";
import type { OpenedSession } from "./session-headers.ts";

export interface InvocationLimits {
  readonly requestBytesMax: number;
  readonly responseBytesMax: number;
  /**
   * Maximum time of a response in milliseconds. SageMaker gives a container 60 s. This is one second less, so that
   * clients with a read time-out of 60 s still get the error response.
   */
  readonly responseMsMax: number;
  /**
   * Maximum time of a streamed response in milliseconds, from the request to the last chunk, including periods without
   * data. SageMaker allows 8 minutes.
   */
  readonly streamMsMax: number;
  /**
   * Maximum wait of a request in milliseconds, while all instances of its variant restart or while the platform adopts
   * instances after its start.
   */
  readonly restartWaitMsMax: number;
  /** Maximum number of requests in flight or waiting on one instance; further requests fail with status 503. */
  readonly requestsMax: number;
  /** Maximum number of streamed responses among these requests; further ones fail with status 503. */
  readonly streamsMax: number;
  /** Idle time after which an additional copy of a model is unloaded, in milliseconds. */
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

/**
 * Maximum bytes of a body that is buffered. A buffered body can be sent again and needs one write to a socket. Longer
 * bodies are streamed.
 */
export const bufferedBytesMax = 1024 * 1024;

/** Limits of a request for which no client waits. They replace the configured limits. */
export interface BackgroundInvocationLimits {
  readonly answerMsMax: number;
  readonly responseBytesMax: number;
  /**
   * Called once for each instance that gets the request, with the log stream ARN of its first container (empty if there
   * is none).
   */
  readonly onContainer: (logStreamArn: string) => void;
}

export interface InvocationRequest {
  /** Headers for the container, by lower-case names: content type, accept, custom attributes and ids. */
  readonly headers: Readonly<Record<string, string>>;
  readonly targetModel: string | null;
  /** The request's content length; null for a chunked body. */
  readonly declaredBytes?: number | null;
  readonly targetVariant: string | null;
  /** Name of the inference component whose copies serve the request. */
  readonly inferenceComponent?: string | null;
  /** Name of the container that serves the request in Direct mode. */
  readonly targetContainer: string | null;
  /** Path on the container in place of /invocations, such as `/v1/chat/completions`. */
  readonly containerPath?: string;
  /** Id of a stateful session, or `newSessionId`. */
  readonly session?: string;
  /** True if the response is sent in chunks as the container produces them; false if it is sent as a whole. */
  readonly isStreamed: boolean;
  /**
   * Returns the body. Called at most once for each instance that gets the request, after its models are loaded. A
   * Buffer can be sent again.
   */
  readonly body: () => Promise<Buffer | Readable>;
  /** Memory lease of the caller. Buffered bytes of the response are added to it. */
  readonly memory: ByteLease;
  /**
   * Present for a request for which no client waits. Its response is streamed, and only some metrics are recorded here.
   */
  readonly bounds?: BackgroundInvocationLimits;
  readonly receivedNs: number;
  /**
   * Milliseconds of the time limit that the request has already spent waiting for the start of a serverless instance.
   */
  readonly waitedMs?: number;
  readonly signal: AbortSignal;
}

export interface InvocationReply {
  readonly contentType: string | null;
  readonly customAttributes: string | null;
  readonly variantName: string;
  /** The session that the model opened with this response; null if there is none. */
  readonly openedSession: OpenedSession | null;
  readonly closedSession: string | null;
  /**
   * The response body. A stream must be read to its end or destroyed. A response to a streamed request is always a
   * stream.
   */
  readonly body: Buffer | Readable;
  readonly byteLength: number | null;
  /** Called once when the response was sent to the client or abandoned, after `failed` if the response failed. */
  readonly done: () => void;
  /** Called when the first chunk of a streamed response has arrived. */
  readonly onStart: () => void;
  /**
   * Records an error of the body and returns the error for the client. After the first chunk of a streamed response, it
   * is a ModelStreamError. Before, it is the same error as for other invocations.
   */
  readonly failed: (error: unknown) => unknown;
}
