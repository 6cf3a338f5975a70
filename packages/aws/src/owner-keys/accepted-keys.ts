import type { RootKey } from "./owner-keys.ts";

/** The owner's keys that the platform currently accepts. They can be replaced while requests are served. */
export class AcceptedKeys {
  #keys: readonly RootKey[];
  #secret: string;
  /** True if signatures are verified. */
  readonly verifiesSignatures: boolean;

  /** `keys`: null if signatures are not verified. `secret` signs the URLs that the platform issues. */
  constructor(keys: readonly RootKey[] | null, secret: string) {
    this.verifiesSignatures = keys !== null;
    this.#keys = keys ?? [];
    this.#secret = secret;
  }

  get all(): readonly RootKey[] {
    return this.#keys;
  }

  /** The secret that signs the URLs of log pages and of the proxy. */
  get secret(): string {
    return this.#secret;
  }

  find(accessKeyId: string): RootKey | undefined {
    return this.#keys.find((key) => key.accessKeyId === accessKeyId);
  }

  /** Replaces the keys. Returns the ids of previous keys that are no longer accepted or have a different secret now. */
  replace(keys: readonly [RootKey, ...RootKey[]]): ReadonlySet<string> {
    const former = this.#keys;
    if (this.verifiesSignatures) this.#keys = keys;
    this.#secret = keys[0].secretAccessKey;
    const isKept = (key: RootKey) => this.find(key.accessKeyId)?.secretAccessKey === key.secretAccessKey;
    return new Set(former.filter((key) => !isKept(key)).map(({ accessKeyId }) => accessKeyId));
  }
}
