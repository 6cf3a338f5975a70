/** Objects in MinIO: the contract of a store, and a platform during an outage of its service. */
import { objectStoreContract } from "@galatea/hosting/objects/object-store.contract.ts";
import { objectsServiceTest } from "../objects-service-checks.ts";
import { openedStore } from "../opened-store.ts";
import { S3Program } from "./s3-program.ts";

const credentials = { accessKeyId: "ONE", secretAccessKey: "another-secret" };

objectStoreContract(
  "MinIO",
  async () => openedStore(await S3Program.open("minio", credentials), credentials),
  new Set([
    "keys are file paths",
    "unknown uploads abort",
    "uploads complete once",
    "uploads listed by start",
    "deleted buckets fail writes",
  ]),
);

objectsServiceTest("MinIO", () => S3Program.open("minio", credentials));
