import { randomBytes } from "node:crypto";
import type { PlacementKey } from "../endpoints/index.ts";

/** Returns a random instance id in SageMaker's format, such as `i-0a1b2c3d4e5f60718`. Names of log streams end with it. */
export function newInstanceId(): string {
  return `i-${randomBytes(8).toString("hex")}`;
}

/** Returns a random key for the placement of a new endpoint's models on its instances. */
export function newPlacementKey(): PlacementKey {
  return randomBytes(8).toString("hex");
}
