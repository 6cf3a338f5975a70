/** Parts of the protocol that --http-restricted-api and --grpc-restricted-protocol can name, in both front ends. */
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

/** What a restricted part answers to: requests with this header of this value. */
export interface Restriction {
  readonly header: string;
  readonly value: string;
}

export type Restrictions = ReadonlyMap<RestrictedApi, Restriction>;
