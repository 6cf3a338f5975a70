/** Describe calls over HTTP while what they describe is being deleted. */
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { connect, type AddressInfo } from "node:net";
import { test } from "node:test";
import { createGateway } from "@galatea/aws";
import { sagemakerService } from "@galatea/aws/services/sagemaker";
import { silentLogger } from "@galatea/base";
import { createComponent, componentSettled, deployShared, spec } from "../../hosting/test/components-fixture.ts";
import { owner } from "../../hosting/test/hosting-fixture.ts";
import { TrafficFixture } from "../../hosting/test/traffic-fixture.ts";

async function serve({ hosting }: TrafficFixture) {
  const server = createServer();
  createGateway({
    services: [sagemakerService({ hosting })],
    credentials: null,
    regionDefault: owner.region,
    accountIdDefault: owner.accountId,
    logger: silentLogger,
  }).attach(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    /** The bytes of the response, headers included. */
    async describe(operation: string, input: object, userAgent: string): Promise<string> {
      const body = JSON.stringify(input);
      const headers = [
        "Host: a",
        "Connection: close",
        "Content-Type: application/x-amz-json-1.1",
        `X-Amz-Target: SageMaker.${operation}`,
        `User-Agent: ${userAgent}`,
        `Content-Length: ${body.length}`,
      ];
      const socket = connect(port, "127.0.0.1");
      socket.write(`POST / HTTP/1.1\r\n${headers.join("\r\n")}\r\n\r\n${body}`);
      return Buffer.concat(await socket.toArray()).toString();
    },
    [Symbol.asyncDispose]: () => new Promise<void>((resolve) => void server.close(() => resolve())),
  };
}

/** Deletes one whose container has stopped responding, describes it, and lets the container end. */
async function describeDeletion(
  bench: TrafficFixture,
  remove: () => Promise<unknown>,
  describe: (userAgent: string) => Promise<string>,
): Promise<void> {
  bench.signal("SIGSTOP");
  await remove();
  const waited = describe("Boto3/1.44.5 md/Botocore#1.44.5 m/Z,e,E,B,b,N");
  assert.match(await describe("Boto3/1.44.5 md/Botocore#1.44.5 m/Z,e,E,b,N"), /^HTTP\/1.1 200 [^]*Status":"Deleting"/);
  bench.signal("SIGCONT");
  assert.match(await waited, /^HTTP\/1.1 400 [^]*\r\nContent-Length: [^]*Could not find/i);
}

test("DescribeEndpoint of an SDK waiter returns when the endpoint is deleted; other calls return at once", async () => {
  await using bench = await TrafficFixture.open();
  await using api = await serve(bench);
  await bench.deploy("e", [{ name: "v" }]);
  await describeDeletion(
    bench,
    () => bench.hosting.endpoints.delete("e", owner),
    (userAgent) => api.describe("DescribeEndpoint", { EndpointName: "e" }, userAgent),
  );
});

test("DescribeInferenceComponent of an SDK waiter returns when the component is deleted; other calls return at once", async () => {
  await using bench = await TrafficFixture.open();
  await using api = await serve(bench);
  await deployShared(bench, "both");
  await createComponent(bench, "both", "one", spec("one"));
  await componentSettled(bench, "one");
  await describeDeletion(
    bench,
    () => bench.hosting.components.delete("one", owner),
    (userAgent) => api.describe("DescribeInferenceComponent", { InferenceComponentName: "one" }, userAgent),
  );
});
