export interface Credential {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  /** The token of temporary credentials, which a request must contain; null for long-lived keys. */
  readonly sessionToken: string | null;
  readonly accountId: string;
  readonly expiresMs: number | null;
}
