import { randomBytes } from "node:crypto";
import type { PlacementKey } from "../endpoints/index.ts";

/** Returns a random id in the format of the machine ids at the end of log stream names. */
export function newInstanceId(): string {
  return `i-${randomBytes(8).toString("hex")}`;
}

/** Returns a random key for a new endpoint. */
export function newPlacementKey(): PlacementKey {
  return randomBytes(8).toString("hex");
}
