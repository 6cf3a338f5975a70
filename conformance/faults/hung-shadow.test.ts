/** A shadow variant whose model never returns, and one whose server is stopped: their endpoints are deleted without waiting for them. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { PutObjectCommand } from "@aws-sdk/client-s3";
import {
  CreateEndpointCommand,
  CreateEndpointConfigCommand,
  CreateModelCommand,
  DeleteEndpointCommand,
} from "@aws-sdk/client-sagemaker";
import { faultyRequest } from "./http-client.ts";
import { faultyConfig } from "./faulty-model.ts";
import { bucket, endpointIs, image, invoke, Platform } from "./platform.ts";
import { descendantsOf } from "./processes.ts";
import { tarball } from "./tarball.ts";
import { pidIn, until } from "./until.ts";

const program = readFileSync(new URL("models/faulty.py", import.meta.url), "utf8");
/** Much less than the 30 s that an instance has for its end, and more than about three seconds plus the delay of a busy machine. */
const endMsMax = 12_000;
let platform: Platform;

before(async () => {
  platform = await Platform.open();
  // The production variant responds at once to requests that block the shadow.
  const models = {
    answers: program.replace("while not os.path.exists", "while False and not os.path.exists"),
    holds: program,
  };
  for (const [name, text] of Object.entries(models)) {
    const archive = tarball([
      { path: "model/config.pbtxt", body: faultyConfig },
      { path: "model/1/model.py", body: name === "answers" ? text.replaceAll(".running", ".answered") : text },
    ]);
    await platform.s3.send(new PutObjectCommand({ Bucket: bucket, Key: `${name}.tar.gz`, Body: archive }));
    await platform.sagemaker.send(
      new CreateModelCommand({
        ModelName: name,
        ExecutionRoleArn: "arn:aws:iam::000000000000:role/faults",
        PrimaryContainer: {
          Image: image,
          ModelDataUrl: `s3://${bucket}/${name}.tar.gz`,
          Environment: { FAULTS_MEETING: platform.workspace.meeting },
        },
      }),
    );
  }
  const variant = (name: string) => ({
    VariantName: name,
    ModelName: name,
    InstanceType: "ml.m5.large" as const,
    InitialInstanceCount: 1,
    InitialVariantWeight: 1,
  });
  await platform.sagemaker.send(
    new CreateEndpointConfigCommand({
      EndpointConfigName: "shadowed",
      ProductionVariants: [variant("answers")],
      ShadowProductionVariants: [variant("holds")],
    }),
  );
});
after(() => platform[Symbol.asyncDispose]());

for (const stops of ["its model never returns", "its server is stopped"] as const)
  test(`an endpoint whose shadow hangs is deleted in a few seconds: ${stops}`, async (t) => {
    const word = stops.replaceAll(" ", "-");
    await platform.sagemaker.send(new CreateEndpointCommand({ EndpointName: word, EndpointConfigName: "shadowed" }));
    await endpointIs(platform, word, "InService");
    assert.match(await invoke(platform, word, null, faultyRequest(`hold ${word}`)), /"OUT"/);
    const worker = await pidIn(join(platform.workspace.meeting, `${word}.running`));
    const server = platform.servers().find((pid) => descendantsOf(pid).some((one) => one.pid === worker));
    assert.ok(server !== undefined);
    if (stops === "its server is stopped") process.kill(server, "SIGSTOP");
    const startedMs = performance.now();
    await platform.sagemaker.send(new DeleteEndpointCommand({ EndpointName: word }));
    await until("all servers have ended", () => platform.servers().length === 0, 60_000);
    const tookMs = performance.now() - startedMs;
    t.diagnostic(`deleted in ${tookMs.toFixed(0)} ms`);
    assert.ok(tookMs < endMsMax, `it took ${tookMs.toFixed(0)} ms`);
  });
