import { isDeepStrictEqual } from "node:util";
import { asDiskError, KeyedLock, type Logger } from "@galatea/base";
import type { InstanceCredentials, InstanceIdentity, IssuedCredentials } from "../instances/index.ts";
import { readAllJson, type Documents } from "../records/index.ts";

export interface InstanceKeysOptions {
  readonly documents: Documents;
  /** URL at which instances can reach the platform. */
  readonly platformUrl: string;
  readonly randomBytes: (byteLength: number) => Uint8Array;
  readonly logger: Logger;
}

/** The access key of one container of an instance. */
export interface InstanceKey {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly identity: InstanceIdentity;
}

interface IssuedKey {
  readonly key: InstanceKey;
  /** `none`: not recorded. `written`: a write was started, so that a record may exist. `kept`: recorded. */
  record: "none" | "written" | "kept";
}

const kind = "instance-key";
const removedAtOnceMax = 500;

/**
 * The access keys of containers: one for each container of each instance. The quotas on instances limit their number.
 */
export class InstanceKeys implements InstanceCredentials {
  readonly #options: InstanceKeysOptions;
  readonly #byContainer = new Map<string, IssuedKey>();
  readonly #byId = new Map<string, InstanceKey>();
  readonly #writes = new KeyedLock();

  private constructor(options: InstanceKeysOptions) {
    this.#options = options;
  }

  /** Opens the store, with the keys that previous runs of the platform issued. */
  static async open(options: InstanceKeysOptions): Promise<InstanceKeys> {
    const keys = new InstanceKeys(options);
    for await (const { key: name, value } of readAllJson<InstanceKey>(options.documents, kind, options))
      keys.#add(name, { key: value, record: "kept" });
    return keys;
  }

  find(accessKeyId: string): InstanceKey | undefined {
    return this.#byId.get(accessKeyId);
  }

  issue(identity: InstanceIdentity): IssuedCredentials {
    const name = nameOf(identity);
    const previous = this.#byContainer.get(name);
    let issued = previous;
    if (issued === undefined || !isDeepStrictEqual(issued.key.identity, identity)) {
      if (previous !== undefined) this.#byId.delete(previous.key.accessKeyId);
      issued = { key: this.#create(identity), record: previous === undefined ? "none" : "written" };
      this.#add(name, issued);
    }
    const current = issued;
    return {
      environment: this.#environmentOf(current.key),
      record: () => this.#writes.run(name, () => this.#record(name, current)),
      [Symbol.asyncDispose]: () => this.#end(name, current),
    };
  }

  async keepOnly(instanceIds: ReadonlySet<string>): Promise<void> {
    const missing = [...this.#byContainer].filter(([, { key }]) => !instanceIds.has(key.identity.instanceId));
    for (const [name, issued] of missing) this.#forget(name, issued);
    for (let from = 0; from < missing.length; from += removedAtOnceMax)
      await this.#remove(missing.slice(from, from + removedAtOnceMax).map(([name]) => name));
  }

  #create(identity: InstanceIdentity): InstanceKey {
    const hex = (byteLength: number) => Buffer.from(this.#options.randomBytes(byteLength)).toString("hex");
    return { accessKeyId: `GALI${hex(8).toUpperCase()}`, secretAccessKey: hex(20), identity };
  }

  #environmentOf({ accessKeyId, secretAccessKey, identity: { region } }: InstanceKey): Record<string, string> {
    return {
      AWS_ENDPOINT_URL: this.#options.platformUrl,
      AWS_REGION: region,
      AWS_DEFAULT_REGION: region,
      AWS_ACCESS_KEY_ID: accessKeyId,
      AWS_SECRET_ACCESS_KEY: secretAccessKey,
      AWS_EC2_METADATA_DISABLED: "true",
    };
  }

  async #record(name: string, issued: IssuedKey): Promise<void> {
    if (issued.record === "kept" || this.#byContainer.get(name) !== issued) return;
    issued.record = "written";
    try {
      const body = JSON.stringify(issued.key);
      await this.#options.documents.write([{ do: "put", kind, key: name, body, expects: "any" }]);
    } catch (error) {
      const { message } = asDiskError(error, "the platform's records") as Error;
      throw new Error(`the instance's access key cannot be recorded: ${message}`, { cause: error });
    }
    issued.record = "kept";
  }

  /**
   * Revokes a key immediately, then deletes its record. If the deletion fails, `keepOnly` deletes the record at the
   * next start of the platform.
   */
  async #end(name: string, issued: IssuedKey): Promise<void> {
    this.#forget(name, issued);
    await this.#writes.run(name, async () => {
      if (issued.record === "none" || this.#byContainer.has(name)) return;
      await this.#remove([name]).catch((error: unknown) => {
        this.#options.logger.warning("the access key of a removed instance stays recorded until the next start", {
          instance: issued.key.identity.instanceId,
          error: String(error),
        });
      });
    });
  }

  async #remove(names: readonly string[]): Promise<void> {
    await this.#options.documents.write(names.map((key) => ({ do: "delete", kind, key, expects: "any" })));
  }

  #add(name: string, issued: IssuedKey): void {
    this.#byContainer.set(name, issued);
    this.#byId.set(issued.key.accessKeyId, issued.key);
  }

  #forget(name: string, issued: IssuedKey): void {
    this.#byId.delete(issued.key.accessKeyId);
    if (this.#byContainer.get(name) === issued) this.#byContainer.delete(name);
  }
}

const nameOf = ({ instanceId, containerName }: InstanceIdentity) => `${instanceId}/${containerName}`;
