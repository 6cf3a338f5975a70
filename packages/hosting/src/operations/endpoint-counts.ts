import type { LogFields } from "@galatea/base";
import type { EndpointRecord } from "../endpoints/index.ts";

/** Returns the number of endpoints in each state and the number of their instances, as fields of the platform's start-up log line. */
export function endpointCountFields(records: readonly EndpointRecord[]): LogFields {
  const counts = new Map([["endpoints", records.length]]);
  const add = (name: string, count: number) => counts.set(name, (counts.get(name) ?? 0) + count);
  for (const { state, generations } of records) {
    add(state.at, 1);
    for (const { observed } of generations.flatMap(({ variants }) => variants))
      add("instances", observed.instanceCount);
  }
  return Object.fromEntries(counts);
}
