import type { FixtureName } from "./fixtures.ts";

/** One request of a case. */
export interface Request {
  /** `GRPC`: a call of the method at `path`; `headers` are its metadata, `body` its messages as gRPC frames them. */
  readonly method: "GET" | "POST" | "DELETE" | "PUT" | "HEAD" | "GRPC";
  readonly path: string;
  readonly port?: "http" | "metrics" | "sagemaker";
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  /** Sent this many times at once; the answer compared is the sorted set of different answers. */
  readonly copies?: number;
  /** Sent this long after the copies before it in the same case were sent, without waiting for their answers. */
  readonly afterMs?: number;
}

/**
 * How an answer is held against the oracle's. Status and the headers that clients read are always compared.
 * - `json`: token by token: order of keys, text of numbers; white space and escapes of strings are free
 * - `map`: as JSON values, keys in any order (protobuf maps are printed in no order)
 * - `ensemble`: `map` with the outputs in any order: Triton prints an ensemble's in no order, and its parameters once a step
 * - `error`: an object with the one key `error`, whose text begins with Triton's
 * - `bytes`: the same bytes
 * - `statistics`: `json` with times masked; `metrics`: families, types and label names;
 *   `model-metrics`: the lines of models' own families, in any order; `status`: nothing more
 * - `binary`: the JSON header as `json`, the buffers after it as bytes
 */
export type Comparison =
  | "json"
  | "map"
  | "ensemble"
  | "error"
  | "bytes"
  | "binary"
  | "statistics"
  | "metrics"
  | "model-metrics"
  | "status";

/** Of a call over gRPC the body is JSON: its reply, a list of replies for a stream, or its status text under `error`. */
export interface Answer {
  /** Of a call over gRPC: 200 for OK, else 600 and the code. */
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

/** What we answer where we mean to differ; `row` names the line of supported.md that says why. */
export interface Difference {
  readonly row: string;
  readonly status: number;
  /** Each must occur in the body. */
  readonly includes: readonly string[];
  /** The oracle must not be asked: it would crash or hang. */
  readonly notAsked?: boolean;
}

export interface Step {
  readonly request: Request;
  readonly compare: Comparison;
  readonly difference?: Difference;
}

export interface Case {
  readonly name: string;
  readonly fixture: FixtureName;
  readonly steps: readonly Step[];
}

export type Answers = readonly (readonly Answer[] | null)[];
