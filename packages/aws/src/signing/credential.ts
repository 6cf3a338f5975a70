export interface Credential {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  /** Set for temporary credentials: the request has to contain it. */
  readonly sessionToken: string | null;
  readonly accountId: string;
  readonly expiresMs: number | null;
}
