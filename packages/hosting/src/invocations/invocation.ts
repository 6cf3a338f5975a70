import type { Readable } from "node:stream";
import type { ByteLease } from "@galatea/base";
import type { OpenedSession } from "./session-headers.ts";

export interface InvocationLimits {
  readonly requestBytesMax: number;
  readonly responseBytesMax: number;
  /** The service gives a container 60 s; a second less, so that clients with that read time-out still hear the reason. */
  readonly answerMsMax: number;
  /** The same of an answer that is a stream, from its request to its last part, however long it is silent between: SageMaker gives 8 minutes. */
  readonly streamMsMax: number;
  /** How long a request waits while every instance of its variant is being started again, or while the platform takes over instances at its start. */
  readonly restartWaitMsMax: number;
  /** Requests of one instance in flight or waiting; above it 503. */
  readonly requestsMax: number;
  /** Of these, those whose answers are streams; above it 503. */
  readonly streamsMax: number;
  /** A further copy of a model that nobody has used for so long goes. */
  readonly modelCopyColdMs: number;
}

export const invocationLimits: InvocationLimits = {
  requestBytesMax: 6_291_456,
  responseBytesMax: 6_291_456,
  answerMsMax: 59_000,
  streamMsMax: 480_000,
  restartWaitMsMax: 20_000,
  requestsMax: 1024,
  streamsMax: 512,
  modelCopyColdMs: 60_000,
};

/** Bodies up to this length are held whole: one write to a socket, and a request that can be sent again. Longer ones stream. */
export const heldBytesMax = 1024 * 1024;

/** What a request may take for which nobody waits at a connection, instead of what the limits say. */
export interface InvocationBounds {
  readonly answerMsMax: number;
  readonly answerBytesMax: number;
  /** Called with the ARN of the log of whoever is asked, each time. */
  readonly asking: (logStreamArn: string) => void;
}

export interface InvocationRequest {
  /** What goes to the container: content-type, accept, custom attributes, ids. Lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  readonly targetModel: string | null;
  /** As the request says; null for a chunked body. */
  readonly declaredBytes?: number | null;
  readonly targetVariant: string | null;
  /** Whose copies are to answer, on an endpoint with inference components. */
  readonly inferenceComponent?: string | null;
  /** The one container that is to answer, where each can be asked alone. */
  readonly targetContainer: string | null;
  /** What is asked of the container in place of /invocations, such as `/v1/chat/completions`. */
  readonly containerPath?: string;
  /** The id of a stateful session, or `newSession`. */
  readonly session?: string;
  /** Whether the answer is wanted part by part, as the container makes it, instead of whole. */
  readonly isStreamed: boolean;
  /** Called once at most for an instance, when its container is ready for it; a Buffer can be sent twice. */
  readonly body: () => Promise<Buffer | Readable>;
  /** Of whoever asks; the answer's bytes are taken from it while they are held. */
  readonly memory: ByteLease;
  /** An answer within bounds of its own streams, and is told in metrics of its own. */
  readonly bounds?: InvocationBounds;
  readonly receivedNs: number;
  readonly signal: AbortSignal;
}

export interface InvocationReply {
  readonly contentType: string | null;
  readonly customAttributes: string | null;
  readonly variantName: string;
  /** What the model says of stateful sessions. */
  readonly openedSession: OpenedSession | null;
  readonly closedSession: string | null;
  /** A stream has to be consumed or destroyed. Always one where the answer is wanted part by part. */
  readonly body: Buffer | Readable;
  readonly byteLength: number | null;
  /** To be called once when the answer has been handed to the client, or was given up. */
  readonly done: () => void;
  /** To be called when the first part of a streamed answer has come. */
  readonly begun: () => void;
  /** What to tell of an error of the body: until the first part as of any invocation, then as of a stream that broke. */
  readonly failed: (error: unknown) => unknown;
}
