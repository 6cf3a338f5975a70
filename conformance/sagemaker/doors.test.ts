import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { ScriptedPlatform } from "./scripted-platform.ts";

const doors = fileURLToPath(new URL("doors.py", import.meta.url));

interface Event {
  readonly cursor: string;
  readonly id: string;
  readonly "detail-type": string;
  readonly detail: { readonly EndpointName: string; readonly EndpointStatus: string };
}

const parsed = (text: string) =>
  text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Event);

test("galatea endpoint stop and start, galatea events and boto3 see one state, also after kill -9 of the platform", async () => {
  await using platform = await ScriptedPlatform.open();
  const events = async (...flags: readonly string[]) => parsed(await platform.command("events", ...flags));
  const statuses = async (...flags: readonly string[]) =>
    (await events(...flags)).map(({ detail }) => `${detail.EndpointName} ${detail.EndpointStatus}`);
  await platform.run(doors, ["deploy"]);
  assert.equal(await platform.command("endpoint", "stop", "doors"), "doors is OutOfService\n");
  await platform.run(doors, ["stopped"]);
  await assert.rejects(platform.command("endpoint", "stop", "doors"), /Cannot stop endpoint .*: it is OutOfService/);
  await assert.rejects(platform.command("endpoint", "start", "absent"), /Could not find endpoint/);
  await platform.killAndStartAgain();
  await platform.run(doors, ["stopped"]);
  const before = await events();
  assert.equal(await platform.command("endpoint", "start", "doors"), "doors is InService\n");
  await platform.run(doors, ["clean"]);
  assert.deepEqual(await statuses(), [
    "doors Creating",
    "doors InService",
    "doors OutOfService",
    "doors Creating",
    "doors InService",
    "doors Deleting",
    "doors Deleted",
  ]);
  assert.deepEqual(await statuses("--after", before.at(-1)?.cursor ?? ""), [
    "doors Creating",
    "doors InService",
    "doors Deleting",
    "doors Deleted",
  ]);
  const [first] = before;
  assert.equal(first?.["detail-type"], "SageMaker Endpoint State Change");
  assert.match(first.id, /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
});
