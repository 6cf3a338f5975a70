/** Planned ends during requests: of an endpoint's old instances, an endpoint, and the platform. No request is lost. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { after, before, test } from "node:test";
import {
  CreateEndpointCommand,
  CreateEndpointConfigCommand,
  DeleteEndpointCommand,
  DescribeEndpointCommand,
  UpdateEndpointCommand,
} from "@aws-sdk/client-sagemaker";
import { PutObjectCommand } from "@aws-sdk/client-s3";
import { faultyRequest } from "./http-client.ts";
import { faultyConfig } from "./faulty-model.ts";
import { bucket, createEndpoint, endpointIs, invoke, Platform, prefix, errorOfInvocation } from "./platform.ts";
import { tarball } from "./tarball.ts";
import { pidIn, until } from "./until.ts";

const program = readFileSync(new URL("models/faulty.py", import.meta.url));
const archive = (text: string | Uint8Array) =>
  tarball([
    { path: "model/config.pbtxt", body: `${faultyConfig}instance_group [ { count: 2 kind: KIND_CPU } ]\n` },
    { path: "model/1/model.py", body: text },
  ]);
const target = "model.tar.gz";

let platform: Platform;
before(async () => {
  platform = await Platform.open();
  await put(prefix + target, archive(program));
});
after(async () => {
  await platform[Symbol.asyncDispose]();
});

const put = (key: string, body: Uint8Array) =>
  platform.s3.send(new PutObjectCommand({ Bucket: bucket, Key: key, Body: body }));

/** An invocation in progress, which ends when `release` is called. */
async function startInvocation(name: string): Promise<{ result: Promise<string>; go: () => Promise<void> }> {
  const word = `held-${name}`;
  const answer = invoke(platform, name, target, faultyRequest(`hold ${word}`));
  answer.catch(() => {});
  const marker = join(platform.workspace.meeting, word);
  await pidIn(`${marker}.running`);
  return { result: answer, go: () => writeFile(`${marker}.go`, "") };
}

/** Sends DescribeEndpoint as a waiter of an SDK does. */
function describeRequest(name: string): string {
  const body = JSON.stringify({ EndpointName: name });
  const headers = [
    "Host: localhost",
    "Content-Type: application/x-amz-json-1.1",
    "X-Amz-Target: SageMaker.DescribeEndpoint",
    "User-Agent: Boto3/1.44.5 m/B",
    `Content-Length: ${body.length}`,
  ];
  return `POST / HTTP/1.1\r\n${headers.join("\r\n")}\r\n\r\n${body}`;
}

test("an update of an endpoint loses no request, neither running ones of its old instance nor new ones", async () => {
  const name = "updated";
  await createEndpoint(platform, { name });
  await endpointIs(platform, name, "InService");
  const blocked = await startInvocation(name);
  const [old = 0] = platform.servers();
  await platform.sagemaker.send(
    new CreateEndpointConfigCommand({
      EndpointConfigName: "second",
      ProductionVariants: [
        { VariantName: "all", ModelName: name, InstanceType: "ml.m5.large", InitialInstanceCount: 1 },
      ],
    }),
  );
  let updated = false;
  const stream = async () => {
    for (let count = 0; ; count++) {
      assert.match(await invoke(platform, name, target, faultyRequest("echo")), /"OUT"/);
      if (updated) return count;
    }
  };
  const streams = Promise.all([stream(), stream(), stream()]);
  await platform.sagemaker.send(new UpdateEndpointCommand({ EndpointName: name, EndpointConfigName: "second" }));
  await until("the endpoint has its second configuration", async () => {
    const found = await platform.sagemaker.send(new DescribeEndpointCommand({ EndpointName: name }));
    return found.EndpointStatus === "InService" && found.EndpointConfigName === "second";
  });
  updated = true;
  for (const count of await streams) assert.ok(count > 0);
  assert.ok(platform.servers().includes(old), "the instance with the pending request is running");
  await blocked.go();
  assert.match(await blocked.result, /"OUT"/);
  await until("the old instance has ended", () => platform.servers().length === 1 && !platform.servers().includes(old));
  await platform.sagemaker.send(new DeleteEndpointCommand({ EndpointName: name }));
  await until("all servers have ended", () => platform.servers().length === 0);
});

test("an endpoint that is deleted accepts no more requests and ends after its running one", async () => {
  const name = "deleted";
  await createEndpoint(platform, { name });
  await endpointIs(platform, name, "InService");
  const pending = await startInvocation(name);
  await platform.sagemaker.send(new DeleteEndpointCommand({ EndpointName: name }));
  const error = await errorOfInvocation(invoke(platform, name, target, faultyRequest("echo")));
  assert.equal(error.message, `Endpoint ${name} of account 000000000000 not found.`);
  assert.equal(platform.servers().length, 1);
  await pending.go();
  assert.match(await pending.result, /"OUT"/);
  await until("all servers have ended", () => platform.servers().length === 0);
});

test("an endpoint that is deleted while it starts can be created again at once, and is a new one", async () => {
  const name = "again";
  const go = join(platform.workspace.meeting, "go");
  const waits = `import os, time\nwhile not os.path.exists(${JSON.stringify(go)}): time.sleep(0.005)\n`;
  await put("waits.tar.gz", archive(waits + program.toString()));
  await createEndpoint(platform, { name, modelDataUrl: `s3://${bucket}/waits.tar.gz` });
  await until("the instance's server is running", () => platform.servers().length === 1);
  const [first = 0] = platform.servers();
  await platform.sagemaker.send(new DeleteEndpointCommand({ EndpointName: name }));
  await until("the endpoint's name is free", () =>
    platform.sagemaker.send(new CreateEndpointCommand({ EndpointName: name, EndpointConfigName: name })).then(
      () => true,
      (error: Error) => {
        assert.match(error.message, /already existing/);
        return false;
      },
    ),
  );
  await writeFile(go, "");
  await endpointIs(platform, name, "InService");
  assert.match(await invoke(platform, name, null, faultyRequest("echo")), /"OUT"/);
  assert.ok(!platform.servers().includes(first));
  await platform.sagemaker.send(new DeleteEndpointCommand({ EndpointName: name }));
  await until("all servers have ended", () => platform.servers().length === 0);
});

test("at SIGTERM the platform completes running requests, does not wait for other connections, and exits", async () => {
  const name = "stopped";
  await createEndpoint(platform, { name });
  await endpointIs(platform, name, "InService");
  await put("never.tar.gz", archive("import time\nwhile True: time.sleep(1)\n"));
  await createEndpoint(platform, { name: "never", modelDataUrl: `s3://${bucket}/never.tar.gz` });
  const port = Number(new URL(platform.url).port);
  const silent = connect(port, "127.0.0.1");
  const silentClosed = new Promise((resolve) => silent.once("close", resolve));
  await new Promise((resolve) => silent.once("connect", resolve));
  const pending = await startInvocation(name);
  const describing = connect(port, "127.0.0.1");
  describing.write(describeRequest("never"));
  // On its own connection, which is accepted after the previous one: its response shows that the other request was
  // read.
  await (await fetch(platform.url)).arrayBuffer();
  const stopped = platform.stop();
  assert.match(Buffer.concat(await describing.toArray()).toString(), /"EndpointStatus":"Creating"/);
  await until("no other connection is accepted", () => {
    const socket = connect(port, "127.0.0.1");
    return new Promise<boolean>((resolve) => {
      socket.once("connect", () => resolve(false)).once("error", () => resolve(true));
    }).finally(() => socket.destroy());
  });
  await pending.go();
  assert.match(await pending.result, /"OUT"/);
  await Promise.all([stopped, silentClosed]);
  assert.equal(platform.servers().length, 0);
});
