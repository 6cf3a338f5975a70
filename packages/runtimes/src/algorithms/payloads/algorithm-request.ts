/** A request of the container contract: bytes, what they are, and what the answer should be. Types are as the client wrote them; "" where it wrote none. */
export interface AlgorithmRequest {
  readonly bytes: Uint8Array;
  readonly contentType: string;
  readonly accept: string;
}

export interface AlgorithmAnswer {
  readonly status: number;
  readonly contentType: string;
  readonly bytes: Uint8Array;
}

/** A request that a container refuses, with the status and the words that its users know. */
export class AlgorithmRefusal extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.name = "AlgorithmRefusal";
    this.status = status;
  }
}

/** Features of several examples, row by row. */
export interface FeatureRows {
  readonly rowCount: number;
  readonly columnCount: number;
  readonly values: Float32Array;
}

/** All rows of a request together: 512 MiB of them. Sparse rows name columns that their bytes do not hold. */
export const featureCellsMax = 2 ** 27;

const encoder = new TextEncoder();

export function textAnswer(contentType: string, text: string): AlgorithmAnswer {
  return { status: 200, contentType, bytes: encoder.encode(text) };
}

export function refusalAnswer({ status, message }: AlgorithmRefusal): AlgorithmAnswer {
  return { status, contentType: "text/html; charset=utf-8", bytes: encoder.encode(message) };
}

/** A request's bytes as UTF-8. Throws TypeError where they are none. */
export function payloadText(bytes: Uint8Array): string {
  return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
}
