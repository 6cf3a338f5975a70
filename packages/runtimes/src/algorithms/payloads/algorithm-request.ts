/** A request of the container API. `contentType` and `accept` are as the client wrote them; "" if the header is missing. */
export interface AlgorithmRequest {
  readonly bytes: Uint8Array;
  readonly contentType: string;
  readonly accept: string;
}

export interface AlgorithmResponse {
  readonly status: number;
  readonly contentType: string;
  readonly bytes: Uint8Array;
}

/** A request that a container rejects, with the status and the text of SageMaker's container. */
export class AlgorithmRequestError extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.name = "AlgorithmRequestError";
    this.status = status;
  }
}

/** Features of several examples, in row-major order. */
export interface FeatureRows {
  readonly rowCount: number;
  readonly columnCount: number;
  readonly values: Float32Array;
}

/** Maximum number of cells in all rows of a request: 512 MiB. A small sparse request could otherwise allocate any amount of memory. */
export const featureCellsMax = 2 ** 27;

const encoder = new TextEncoder();

export function textResponse(contentType: string, text: string): AlgorithmResponse {
  return { status: 200, contentType, bytes: encoder.encode(text) };
}

export function rejectionResponse({ status, message }: AlgorithmRequestError): AlgorithmResponse {
  return { status, contentType: "text/html; charset=utf-8", bytes: encoder.encode(message) };
}

/** Decodes a request's bytes as UTF-8. Throws TypeError for invalid UTF-8. */
export function payloadText(bytes: Uint8Array): string {
  return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
}
