/** Answers that take longer than clients wait for a byte, on a clock on which a minute lasts half a second. */
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { connect, type AddressInfo } from "node:net";
import { test } from "node:test";
import {
  DescribeEndpointCommand,
  SageMakerClient,
  waitUntilEndpointDeleted,
  waitUntilEndpointInService,
} from "@aws-sdk/client-sagemaker";
import { AwsError, delay, silentLogger, systemClock, type Clock } from "../../base/index.ts";
import sagemaker from "../spec/gen/sagemaker.json" with { type: "json" };
import { asServiceModel } from "../spec/index.ts";
import { anyResource, createGateway, type CallContext } from "./index.ts";

const fast: Clock = {
  epochMs: () => systemClock.epochMs(),
  monotonicNs: () => systemClock.monotonicNs(),
  timer: (delayMs, fire) => systemClock.timer(delayMs / 120, fire),
};
const described = {
  EndpointName: "e",
  EndpointArn: "arn:aws:sagemaker:us-east-1:111122223333:endpoint/e",
  EndpointStatus: "InService",
  CreationTime: new Date(0),
  LastModifiedTime: new Date(0),
};

/** DescribeEndpoint by a handler of the test's own. */
async function serve(handle: (context: CallContext) => Promise<object>) {
  const server = createServer();
  createGateway({
    services: [
      {
        kind: "modelled",
        model: asServiceModel(sagemaker),
        scope: "sagemaker",
        validationCodes: { json: "ValidationException", query: "ValidationException" },
        operations: {
          DescribeEndpoint: {
            action: "sagemaker:DescribeEndpoint",
            resource: anyResource,
            handle: (_input: object, context: CallContext) => handle(context),
          },
        },
      },
    ],
    credentials: null,
    regionDefault: "us-east-1",
    accountIdDefault: "111122223333",
    logger: silentLogger,
    clock: fast,
  }).attach(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const close = () => {
    server.closeAllConnections();
    return new Promise<void>((resolve) => void server.close(() => resolve()));
  };
  return { port, [Symbol.asyncDispose]: close };
}

const clientOf = (port: number, maxAttempts = 1) =>
  new SageMakerClient({
    region: "us-east-1",
    endpoint: `http://127.0.0.1:${port}`,
    credentials: { accessKeyId: "a", secretAccessKey: "b" },
    maxAttempts,
  });

/** Kept awake for so many minutes of the clock. */
async function late(context: CallContext, minutes: number): Promise<object> {
  using _blanks = context.stayAwake.blanks?.() ?? assert.fail();
  await delay(fast, minutes * 60_000, context.signal);
  return described;
}

/** That there is no such endpoint, after so many minutes of the clock. */
async function lateError(context: CallContext, minutes: number): Promise<never> {
  using _interims = context.stayAwake.interims?.();
  await delay(fast, minutes * 60_000, context.signal);
  throw new AwsError("ValidationException", 'Could not find endpoint "e".');
}

interface RawRequest {
  readonly version?: string;
  readonly header?: string;
  /** Told what there is of the answer. */
  readonly see?: (text: string) => void;
}

/** The whole answer as it came, of a request for the content type. */
async function raw(
  port: number,
  contentType: string,
  { version = "1.1", header = "X-Test: a", see = () => {} }: RawRequest = {},
): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  let seen = "";
  socket.on("data", (bytes) => see((seen += String(bytes))));
  socket.write(
    `POST / HTTP/${version}\r\n${header}\r\nHost: a\r\nConnection: close\r\nContent-Type: ${contentType}\r\nX-Amz-Target: SageMaker.DescribeEndpoint\r\n` +
      `Content-Length: 20\r\n\r\n{"EndpointName":"e"}`,
  );
  // One that is broken off says so by an error, which is no surprise here.
  socket.on("error", () => {});
  await new Promise((resolve) => socket.once("close", resolve));
  return seen;
}

test("the JavaScript SDK reads an answer that begins with blanks, and its waiter is done with it", async () => {
  await using server = await serve((context) => late(context, 2));
  using client = { sdk: clientOf(server.port), [Symbol.dispose]: () => client.sdk.destroy() };
  const answer = await client.sdk.send(new DescribeEndpointCommand({ EndpointName: "e" }));
  assert.deepEqual([answer.EndpointName, answer.CreationTime], ["e", new Date(0)]);
  const waited = await waitUntilEndpointInService({ client: client.sdk, maxWaitTime: 60 }, { EndpointName: "e" });
  assert.equal(waited.state, "SUCCESS");
});

test("blanks come after a while only, so that what is answered soon has the length and status that it has without", async () => {
  await using server = await serve((context) => late(context, 0.1));
  assert.match(await raw(server.port, "application/x-amz-json-1.1"), /^HTTP\/1.1 200 [^]*Content-Length: /);
  const { promise: blank, resolve } = Promise.withResolvers<void>();
  await using slow = await serve(async (context) => {
    using _blanks = context.stayAwake.blanks?.() ?? assert.fail();
    await blank;
    return described;
  });
  const answer = await raw(slow.port, "application/x-amz-json-1.1", {
    see: (seen) => seen.includes("\r\n1\r\n \r\n1\r\n \r\n") && resolve(),
  });
  assert.match(answer, /\r\nContent-Type: application\/x-amz-json-1.1\r\n/);
  assert.match(answer, /\r\nTransfer-Encoding: chunked\r\n[^]*\r\n1\r\n \r\n1\r\n \r\n[^]*"EndpointName":"e"/);
});

test("an error before the first blank is an error, and one after it breaks the answer off", async () => {
  const fail = async (context: CallContext, minutes: number) => {
    await late(context, minutes);
    throw new AwsError("ValidationException", "gone");
  };
  await using soon = await serve((context) => fail(context, 0.1));
  assert.match(await raw(soon.port, "application/x-amz-json-1.1"), /^HTTP\/1.1 400 [^]*gone/);
  await using slow = await serve((context) => fail(context, 1));
  const answer = await raw(slow.port, "application/x-amz-json-1.1");
  assert.ok(!answer.includes("gone") && !answer.endsWith("0\r\n\r\n"), answer);
});

test("the JavaScript SDK reads an error behind interim responses, and its waiter for a deletion is done with it", async () => {
  await using server = await serve((context) => lateError(context, 2));
  using client = { sdk: clientOf(server.port), [Symbol.dispose]: () => client.sdk.destroy() };
  const answer = client.sdk.send(new DescribeEndpointCommand({ EndpointName: "e" }));
  await assert.rejects(answer, { name: "ValidationException", message: 'Could not find endpoint "e".' });
  const waited = await waitUntilEndpointDeleted({ client: client.sdk, maxWaitTime: 60 }, { EndpointName: "e" });
  assert.equal(waited.state, "SUCCESS");
});

test("interim responses come after a while only, any number of them, and leave the answer as it is without", async () => {
  await using soon = await serve((context) => lateError(context, 0.1));
  const plain = await raw(soon.port, "application/x-amz-json-1.1");
  assert.match(plain, /^HTTP\/1.1 400 [^]*\r\nContent-Length: [^]*Could not find/);
  const { promise: woken, resolve } = Promise.withResolvers<void>();
  await using slow = await serve(async (context) => {
    using _interims = context.stayAwake.interims?.() ?? assert.fail();
    await woken;
    return described;
  });
  const interims = "HTTP/1.1 100 Continue\r\n\r\n".repeat(3);
  const answer = await raw(slow.port, "application/x-amz-json-1.1", {
    see: (seen) => seen.startsWith(interims) && resolve(),
  });
  assert.match(
    answer,
    /^(?:HTTP\/1.1 100 Continue\r\n\r\n){3,}HTTP\/1.1 200 [^]*\r\nContent-Length: [^]*"EndpointName":"e"/,
  );
});

test("there are no interim responses for HTTP/1.0, nor through a proxy that says what it is", async () => {
  await using server = await serve((context) => lateError(context, 1));
  for (const request of [
    { version: "1.0" },
    { header: "Via: 1.1 a" },
    { header: "X-Forwarded-For: 10.0.0.1" },
    { header: "X-Real-IP: 10.0.0.1" },
    { header: "Forwarded: for=10.0.0.1" },
  ]) {
    assert.match(await raw(server.port, "application/x-amz-json-1.1", request), /^HTTP\/1.1 400 /);
  }
  assert.match(await raw(server.port, "application/x-amz-json-1.1"), /^HTTP\/1.1 100 /);
});

test("whoever leaves while it is kept awake ends the call", async () => {
  const { promise: aborted, resolve } = Promise.withResolvers<boolean>();
  await using server = await serve(async (context) => {
    context.signal.addEventListener("abort", () => resolve(true));
    return await late(context, 60);
  });
  const socket = connect(server.port, "127.0.0.1");
  socket.write(
    `POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-amz-json-1.1\r\nX-Amz-Target: SageMaker.DescribeEndpoint\r\n` +
      `Content-Length: 20\r\n\r\n{"EndpointName":"e"}`,
  );
  socket.once("data", () => socket.destroy());
  assert.equal(await aborted, true);
});
