/** A custom request or response parameter: string, bool, int64 (bigint) or double (number), as in the KServe protocol. */
export type ParameterValue = string | boolean | bigint | number;

export const noParameters: ReadonlyMap<string, ParameterValue> = new Map();
