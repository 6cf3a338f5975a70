import assert from "node:assert/strict";
import { test } from "node:test";
import { eventually } from "@galatea/base/core/eventually-fixture.ts";
import { instanceAgentContract } from "../src/contracts/index.ts";
import { openLocalAgent } from "./instance-agents-fixture.ts";

instanceAgentContract("agent in process", async (eventsMax) => {
  const subject = await openLocalAgent(eventsMax);
  return { ...subject, connect: () => Promise.resolve(subject.agent) };
});

test("disposal of the agent aborts a start in progress and does not wait for its time limit", async () => {
  await using subject = await openLocalAgent();
  const ends: (Error | null)[] = [];
  const instance = subject.agent.instance(subject.specFor("sick"), (event) => {
    if (event.kind === "ended") ends.push(event.error);
  });
  await instance.put("delete");
  await eventually(() => instance.view.containers[0]?.health.at === "starting");
  await subject.agent[Symbol.asyncDispose]();
  // The start was aborted by the disposal. A start that exceeded its limit would have another message.
  assert.deepEqual(
    ends.map((error) => error?.message),
    ["closed"],
  );
  assert.deepEqual((await subject.agent.state()).instances, []);
});
