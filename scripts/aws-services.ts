import { readdirSync, readFileSync } from "node:fs";

const services = new URL("../packages/aws/src/services/", import.meta.url);

/** Where the published models lie, and the types that are written from them. */
export const specFolder = new URL("../packages/aws/src/spec/gen/", import.meta.url);

/**
 * The operations that each AWS service of the platform builds, as its folder's built-operations.json lists them, by boto3's name of
 * the service. Everything else of a service is known by name and refused by name.
 */
export function builtOperations(): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, readonly string[]>();
  for (const path of readdirSync(services, { recursive: true, encoding: "utf8" }).toSorted()) {
    const [service, file, ...more] = path.split("/");
    if (service === undefined || file !== "built-operations.json" || more.length > 0) continue;
    found.set(service, JSON.parse(readFileSync(new URL(path, services), "utf8")) as string[]);
  }
  return found;
}
