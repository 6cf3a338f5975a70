/** The log lines of `galatea up` about endpoints that are created, fail and are deleted. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { DeleteEndpointCommand } from "@aws-sdk/client-sagemaker";
import { eventually } from "@galatea/base/core/eventually-fixture.ts";
import { RunningPlatform } from "./running-platform-fixture.ts";

test("each state of an endpoint is a line on stderr, a failure is a warning with its reason, and stdout has only the summary", async () => {
  await using platform = await RunningPlatform.open();
  const logged = (pattern: RegExp) => eventually(() => pattern.test(platform.stderr));
  await platform.createEndpoint("mine");
  await logged(/^I.*\] "endpoint 'mine' is Creating"$/m);
  await logged(/^I.*\] "endpoint 'mine' is InService after \d+\.\d s"$/m);
  await platform.createEndpoint("broken", { isBroken: true });
  await logged(/^W.*\] "endpoint 'broken' is Failed after \d+\.\d s: .*absent\.tar\.gz/m);
  await platform.sagemaker.send(new DeleteEndpointCommand({ EndpointName: "mine" }));
  await logged(/^I.*\] "endpoint 'mine' is Deleting"$/m);
  await logged(/^I.*\] "endpoint 'mine' is deleted after \d+\.\d s"$/m);
  assert.deepEqual(
    platform.stdout.split("\n").map((line) => line.split(":")[0]?.trim().split(" ")[0]),
    ["Galatea", "data", "authentication", "confinement", "next", ""],
  );
});
