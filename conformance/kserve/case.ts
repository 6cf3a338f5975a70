import type { FixtureName } from "./fixtures.ts";

/** A request of a case. */
export interface Request {
  /** `GRPC`: a call of the method at `path`. `headers` are its metadata, and `body` its messages in gRPC's framing. */
  readonly method: "GET" | "POST" | "DELETE" | "PUT" | "HEAD" | "GRPC";
  readonly path: string;
  readonly port?: "http" | "metrics" | "sagemaker";
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  /** Number of concurrent copies of the request. The compared response is the sorted set of different responses. */
  readonly copies?: number;
  /** Delay in milliseconds after the previous step, whose responses are not awaited. */
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

/**
 * A response. The body of a gRPC call is JSON: its reply, a list of replies for a stream, or its status text under
 * `error`.
 */
export interface ComparedResponse {
  /** The HTTP status. For a gRPC call: 200 for OK, otherwise 600 plus the code. */
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

/** Our response where we differ on purpose; `row` names the line of supported.md with the reason. */
export interface Difference {
  readonly row: string;
  readonly status: number;
  /** Texts that the body must contain. */
  readonly includes: readonly string[];
  /** True if the request must not be sent to the oracle, which would crash or hang. */
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

export type CaseResponses = readonly (readonly ComparedResponse[] | null)[];
