import assert from "node:assert/strict";
import { test } from "node:test";
import type { EndpointRecord } from "../endpoints/index.ts";
import { endpointCountFields } from "./endpoint-counts.ts";

const endpoint = (at: EndpointRecord["state"]["at"], ...instanceCounts: readonly number[]) => {
  const variants = instanceCounts.map((instanceCount) => ({ observed: { instanceCount, weight: 1 } }));
  return { state: { at }, generations: [{ variants }] } as unknown as EndpointRecord;
};

test("the fields of the start's log line are the numbers of endpoints in each state and of their instances", () => {
  const records = [endpoint("InService", 2, 1), endpoint("InService", 0), endpoint("Failed")];
  assert.deepEqual(endpointCountFields(records), { endpoints: 3, InService: 2, Failed: 1, instances: 3 });
});
