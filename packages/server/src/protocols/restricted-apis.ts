/** Groups of operations that --http-restricted-api and --grpc-restricted-protocol can restrict. */
export type RestrictedApi =
  | "health"
  | "metadata"
  | "inference"
  | "shared-memory"
  | "model-config"
  | "model-repository"
  | "statistics"
  | "trace"
  | "logging";

/** The header and value that a request to a restricted group must have. */
export interface Restriction {
  readonly header: string;
  readonly value: string;
}

export type Restrictions = ReadonlyMap<RestrictedApi, Restriction>;
