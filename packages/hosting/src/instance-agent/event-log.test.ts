import assert from "node:assert/strict";
import { test } from "node:test";
import { InstanceFailure } from "../instances/index.ts";
import type { InstanceEvent } from "./agent-events.ts";
import { EventLog } from "./event-log.ts";

const long = "x".repeat(100);
const health = {
  at: "waiting",
  failure: "",
  lastLines: [],
  isFailing: false,
  isUnhealthy: false,
  isDraining: false,
} as const;

const events: readonly InstanceEvent[] = [
  { kind: "line", position: 0, text: long },
  { kind: "health", position: 0, health: { ...health, failure: long, unconfined: null } },
  { kind: "health", position: 0, health: { ...health, lastLines: [long], unconfined: null } },
  { kind: "health", position: 0, health: { ...health, unconfined: { view: long } } },
  { kind: "outdated", position: 0, target: long },
  { kind: "ended", error: new Error(long) },
  { kind: "ended", error: new InstanceFailure("", { containerName: "c", lastLines: [long] }) },
];

for (const event of events) {
  test(`the texts of an event count toward the limit: ${JSON.stringify(event).slice(0, 80)}`, async () => {
    const log = new EventLog({ eventsMax: 1000, charsMax: 1500 }, 0);
    const { signal } = new AbortController();
    log.append("i", event);
    const reading = log.read({ after: 1, signal });
    const first = reading.next();
    for (let count = 0; count < 10; count += 1) log.append("i", event);
    assert.equal((await first).value?.seq, 2);
    for (let count = 0; count < 10; count += 1) log.append("i", event);
    assert.equal((await reading.next()).value?.kind, "lost");
  });
}
