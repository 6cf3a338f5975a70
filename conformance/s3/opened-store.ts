import assert from "node:assert/strict";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { silentLogger } from "@galatea/base";
import type { BucketStore } from "@galatea/hosting/objects";
import { openS3Store } from "@galatea/hosting/objects/s3";

/** Opens stores for the contract, over an S3 service that has no buckets. Disposal also ends the service. */
export async function openedStore(
  service: { readonly url: string } & AsyncDisposable,
  credentials: { readonly accessKeyId: string; readonly secretAccessKey: string },
) {
  const folder = await mkdtemp(join(tmpdir(), "galatea-s3-store-"));
  const address = { endpoint: service.url, region: "us-east-1", credentials };
  const stores: BucketStore[] = [];
  const open = async (name: string) => {
    const store = await openS3Store({ address, folder: join(folder, name), processorCount: 2, logger: silentLogger });
    stores.push(store);
    return store;
  };
  const store = await open("first");
  await store.createBucket("bkt");
  return {
    store,
    reopened: () => open(`reopened-${stores.length}`),
    async [Symbol.asyncDispose]() {
      for (const each of stores) await each[Symbol.asyncDispose]();
      await service[Symbol.asyncDispose]();
      const entries = await readdir(folder, { recursive: true, withFileTypes: true });
      await rm(folder, { recursive: true });
      assert.deepEqual(
        entries.filter((each) => each.isFile()),
        [],
        "no body is open",
      );
    },
  };
}
