import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { silentLogger, systemClock } from "@galatea/base";
import { testTimeoutMs } from "@galatea/base/core/eventually-fixture.ts";
import { instanceLimits, type HostedContainer } from "../instances/index.ts";
import { NodeMemory } from "../nodes/index.ts";
import { nodeWith } from "../nodes/node-fixture.ts";
import { RunningContainer } from "./running-container.ts";

test("a request on a connection that its container has just closed is sent once more, to the same container", async () => {
  await using closing = new AsyncDisposableStack();
  const directory = await mkdtemp(join(tmpdir(), "gal-running-"));
  closing.defer(() => rm(directory, { recursive: true }));
  const sockets = new Set<Socket>();
  const server = createServer((request, response) => void request.pipe(response));
  server.on("connection", (socket: Socket) => sockets.add(socket));
  const path = join(directory, "s");
  await once(server.listen(path), "listening");
  closing.defer(() => void server.close());
  const hosted: HostedContainer = {
    address: { kind: "socket", path },
    ended: new Promise(() => {}),
    lastLines: () => [],
    usage: () => Promise.resolve(null),
    workedNs: () => Promise.resolve(null),
    stop: () => Promise.resolve(),
  };
  const spec = {
    name: "primary",
    title: "e/v",
    runtime: "tritonserver",
    models: { kind: "one", container: {}, bringMsMax: testTimeoutMs },
    environment: {},
    modelMemoryBytes: 0,
    concurrencyMax: null,
    cache: null,
  } as const;
  const running = closing.use(
    new RunningContainer({
      node: nodeWith(),
      memory: new NodeMemory({ bytesMax: Infinity, reservedBytes: () => 0 }),
      clock: systemClock,
      logger: silentLogger,
      instance: {
        id: "i-1",
        owner: null,
        budget: { vcpuCount: 1, memoryBytes: 1 },
        containers: [spec],
        limits: instanceLimits,
        reservedBytes: 0,
        restartWaitMsMax: testTimeoutMs,
      },
      spec,
      position: 0,
      slot: {
        trees: null,
        adopt: () => Promise.resolve(null),
        prepare: () => Promise.resolve(),
        start: () => Promise.resolve(hosted),
      },
      emit: () => {},
    }),
  );
  const signal = AbortSignal.timeout(testTimeoutMs);
  await running.container.start(signal);
  const call = async (body: string) => {
    const shared = { headers: {}, body: Buffer.from(body), isStreamed: false, mayGoElsewhere: false, signal };
    return await text((await running.invoke(shared)).body);
  };
  const askBuffered = async (body: string) =>
    (await running.invokeBuffered({ headers: {}, body: Buffer.from(body), admit: () => {}, signal })).body.toString();
  for (const send of [call, askBuffered]) {
    assert.equal(await send("first"), "first");
    const before = sockets.size;
    // Undici reads from an idle connection, then writes in a later phase of the same tick. The connection closes
    // between the two.
    setImmediate(() => {
      for (const socket of sockets) socket.destroy();
    });
    assert.equal(await send("second"), "second");
    assert.ok(sockets.size > before);
  }
});
