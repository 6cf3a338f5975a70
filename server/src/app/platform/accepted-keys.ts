import type { RootKey } from "./credentials.ts";

/** The keys of the platform's owner that are accepted now: they are replaced while requests are served. */
export class AcceptedKeys {
  #keys: readonly RootKey[];
  #secret: string;
  /** Whether signatures are verified. */
  readonly verifies: boolean;

  /** `keys`: null where signatures are not verified. `secret` signs addresses that the platform hands out. */
  constructor(keys: readonly RootKey[] | null, secret: string) {
    this.verifies = keys !== null;
    this.#keys = keys ?? [];
    this.#secret = secret;
  }

  get all(): readonly RootKey[] {
    return this.#keys;
  }

  /** What the addresses of logs and of the proxy are signed with. */
  get secret(): string {
    return this.#secret;
  }

  find(accessKeyId: string): RootKey | undefined {
    return this.#keys.find((key) => key.accessKeyId === accessKeyId);
  }

  /** Returns the ids of keys that are not accepted any more, or no longer with the same secret. */
  replace(keys: readonly [RootKey, ...RootKey[]]): ReadonlySet<string> {
    const former = this.#keys;
    if (this.verifies) this.#keys = keys;
    this.#secret = keys[0].secretAccessKey;
    const isKept = (key: RootKey) => this.find(key.accessKeyId)?.secretAccessKey === key.secretAccessKey;
    return new Set(former.filter((key) => !isKept(key)).map(({ accessKeyId }) => accessKeyId));
  }
}
