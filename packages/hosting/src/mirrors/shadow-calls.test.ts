import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { test } from "node:test";
import { ByteBudget, ByteLease, silentLogger, systemClock } from "@galatea/base";
import { SteppedClock } from "@galatea/base/core/stepped-clock-fixture.ts";
import type { InvocationReply, InvocationRequest } from "../invocations/index.ts";
import type { EndpointMirrorMemory } from "./mirror-memory.ts";
import { ShadowCalls } from "./shadow-calls.ts";

const reported = {
  contentType: null,
  customAttributes: null,
  variantName: "s",
  openedSession: null,
  closedSession: null,
};
const reply: InvocationReply = {
  ...reported,
  body: Buffer.alloc(0),
  byteLength: 0,
  done: () => {},
  onStart: () => {},
  failed: (error) => error,
};

test("a shadow call has the path and the streaming mode of the original call", async () => {
  const requested: Pick<InvocationRequest, "containerPath" | "isStreamed">[] = [];
  const share = { memory: () => new ByteLease(new ByteBudget(1)), lose: () => {} } as unknown as EndpointMirrorMemory;
  const request = ({ containerPath = "none", isStreamed }: InvocationRequest) => {
    requested.push({ containerPath, isStreamed });
    return Promise.resolve(reply);
  };
  const limits = { callsMax: 2, responseBytesPerSecond: 1e6 };
  await using calls = new ShadowCalls({ invoke: request, share, clock: systemClock, logger: silentLogger, ...limits });
  const plain = { headers: {}, targetModel: null, targetContainer: null, pieces: [] };
  const send = (request: Pick<InvocationRequest, "containerPath" | "isStreamed">) =>
    new Promise<void>((resolve) => {
      calls.send({ ...plain, ...request }, { take: ({ body }) => body, ended: resolve });
    });
  await send({ isStreamed: false });
  await send({ isStreamed: true, containerPath: "/v1/chat/completions" });
  assert.deepEqual(requested, [
    { containerPath: "none", isStreamed: false },
    { containerPath: "/v1/chat/completions", isStreamed: true },
  ]);
});

test("a shadow's responses are read at a limited rate, and calls over that rate are dropped", async () => {
  const clock = new SteppedClock();
  const lost: string[] = [];
  const share = {
    memory: () => new ByteLease(new ByteBudget(1)),
    lose: (loss: string) => lost.push(loss),
  } as unknown as EndpointMirrorMemory;
  let readBytes = 0;
  const endless = new Readable({
    read() {
      readBytes += 10_000;
      this.push(Buffer.alloc(10_000));
    },
  });
  const results = [endless, Buffer.alloc(3_000_000), Buffer.alloc(1)];
  const call = () => Promise.resolve({ ...reply, body: results.shift() ?? Buffer.alloc(0) });
  await using calls = new ShadowCalls({
    invoke: call,
    share,
    clock,
    logger: silentLogger,
    callsMax: 9,
    responseBytesPerSecond: 1_000_000,
  });
  const request = { headers: {}, targetModel: null, targetContainer: null, pieces: [], isStreamed: true };
  const send = (ended: () => void = () => {}) => calls.send(request, { take: ({ body }) => body, ended });
  const ticks = async () => {
    for (let tick = 0; tick < 1000; tick += 1) await new Promise((resolve) => setImmediate(resolve));
  };
  // Bytes that may be read above the first second's allowance: the buffer of the stream.
  const aheadBytes = 200_000;
  send();
  await ticks();
  assert.ok(readBytes >= 1_000_000 && readBytes <= 1_000_000 + aheadBytes, `${readBytes} bytes were read`);
  assert.equal(results.length, 2);
  send();
  assert.deepEqual([lost, results.length], [["shadow-busy"], 2]);
  clock.advance(500);
  await ticks();
  assert.ok(readBytes >= 1_400_000 && readBytes <= 1_500_000 + aheadBytes, `${readBytes} bytes were read`);
  endless.destroy();
  clock.advance(1000);
  await ticks();
  // A buffered response is read completely even if it exceeds the rate. The next call must wait for the excess bytes.
  await new Promise<void>((resolve) => send(resolve));
  for (const seconds of [1, 1]) {
    send();
    clock.advance(seconds * 1000);
  }
  assert.deepEqual([lost.length, results.length], [3, 1]);
  clock.advance(10);
  await new Promise<void>((resolve) => send(resolve));
  assert.deepEqual([lost.length, results.length], [3, 0]);
});
