import { readdir, readFile } from "node:fs/promises";
import { s3Operations } from "../../../packages/aws/src/services/s3/routes.ts";
import { specFolder } from "../../../scripts/aws-services.ts";

/** Returns every operation of the platform, as `service.Operation` with botocore's names of services. */
export async function platformOperations(): Promise<readonly string[]> {
  const found = Object.keys(s3Operations).map((operation) => `s3.${operation}`);
  for (const file of (await readdir(specFolder)).filter((name) => name.endsWith(".json"))) {
    const model = JSON.parse(await readFile(new URL(file, specFolder), "utf8")) as {
      service: string;
      operations: object;
    };
    found.push(...Object.keys(model.operations).map((operation) => `${model.service}.${operation}`));
  }
  return found.toSorted();
}
