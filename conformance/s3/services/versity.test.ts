/** Objects in Versity's S3 gateway: the contract of a store, and a platform during an outage of its service. */
import { objectStoreContract } from "@galatea/hosting/objects/object-store.contract.ts";
import { objectsServiceTest } from "../objects-service-checks.ts";
import { openedStore } from "../opened-store.ts";
import { S3Program } from "./s3-program.ts";

const credentials = { accessKeyId: "ONE", secretAccessKey: "another-secret" };

objectStoreContract(
  "Versity S3 gateway",
  async () => openedStore(await S3Program.open("versitygw", credentials), credentials),
  new Set([
    "keys are file paths",
    "concurrent deletes succeed",
    "upload id markers fail",
    "deleted buckets fail writes",
  ]),
);

objectsServiceTest("Versity S3 gateway", () => S3Program.open("versitygw", credentials));
