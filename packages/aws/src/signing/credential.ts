export interface Credential {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  /** Set for temporary credentials: the request must carry it. */
  readonly sessionToken: string | null;
  readonly accountId: string;
  readonly expiresMs: number | null;
}
