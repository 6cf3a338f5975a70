/** The log lines about states of endpoints, inference components and transform jobs. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createLogger } from "@galatea/base";
import { DocumentMemory } from "../src/records/contracts/index.ts";
import { componentSettled, createComponent, deployShared, spec } from "./components-fixture.ts";
import { owner } from "./hosting-fixture.ts";
import { TrafficFixture } from "./traffic-fixture.ts";
import { TransformFixture } from "./transforms-fixture.ts";

const stateLine = /^\w+ (?:endpoint|inference component|transform job) '/;

/** Returns the log lines about states, with N in place of the seconds. */
const states = (lines: readonly string[]) =>
  lines.filter((line) => stateLine.test(line)).map((line) => line.replace(/ \d+\.\d s/, " N s"));

test("an endpoint and a component log a line for each state, and a warning with the reason for a failure", async () => {
  const lines: string[] = [];
  const logger = createLogger((level, message) => lines.push(`${level} ${message}`));
  const documents = new DocumentMemory();
  {
    await using bench = await TrafficFixture.open(documents, null, { logger });
    await deployShared(bench, "e");
    await createComponent(bench, "e", "good", spec("good"));
    await componentSettled(bench, "good");
    await createComponent(bench, "e", "broken", spec("broken"));
    await componentSettled(bench, "broken");
    await bench.hosting.components.delete("good", owner);
    await componentSettled(bench, "good");
  }
  const [failed = ""] = lines.filter((line) => line.includes("is Failed"));
  assert.match(failed, /^warning inference component 'broken' is Failed after \d+\.\d s: .{20}/);
  assert.deepEqual(
    states(lines).filter((line) => !line.startsWith("warning")),
    [
      "info endpoint 'e' is Creating",
      "info endpoint 'e' is InService after N s",
      "info inference component 'good' is Creating",
      "info inference component 'good' is InService after N s",
      "info inference component 'broken' is Creating",
      "info inference component 'good' is Deleting",
      "info inference component 'good' is deleted after N s",
    ],
  );
  lines.length = 0;
  await using bench = await TrafficFixture.open(documents, null, { logger });
  await bench.hosting.resume();
  assert.deepEqual(states(lines), []);
});

test("a transform job logs a line when it starts and one when it ends", async () => {
  await using bench = await TransformFixture.open();
  await bench.put("in/x", "a");
  await bench.run("good", "echo", {});
  assert.deepEqual(states(bench.platformLines), [
    "info transform job 'good' is InProgress",
    "info transform job 'good' is Completed after N s",
  ]);
});
