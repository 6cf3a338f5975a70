import { readdir, readFile } from "node:fs/promises";
import { s3Operations } from "../../../packages/aws/src/services/s3/routes.ts";

const services = new URL("../../../packages/aws/src/services/", import.meta.url);

/** Every operation that the platform has, as `service.Operation` with botocore's names of services. */
export async function platformOperations(): Promise<readonly string[]> {
  const found = Object.keys(s3Operations).map((operation) => `s3.${operation}`);
  const lists = (await readdir(services, { recursive: true })).filter((path) => path.endsWith("built-operations.json"));
  for (const list of lists) {
    const service = list.split("/")[0] ?? "";
    const operations = JSON.parse(await readFile(new URL(list, services), "utf8")) as readonly string[];
    found.push(...operations.map((operation) => `${service}.${operation}`));
  }
  return found.toSorted();
}
