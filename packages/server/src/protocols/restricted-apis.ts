/** Groups of operations that --http-restricted-api and --grpc-restricted-protocol can name. */
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

/** The header that requests to a restricted API must have, and its value. */
export interface Restriction {
  readonly header: string;
  readonly value: string;
}

export type Restrictions = ReadonlyMap<RestrictedApi, Restriction>;
