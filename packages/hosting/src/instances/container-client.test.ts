import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { systemClock, type Clock } from "@galatea/base";
import { ContainerClient, containerLimits } from "./container-client.ts";

const never = new AbortController().signal;

async function listening(server: Server, host: string): Promise<AddressInfo> {
  server.listen(0, host);
  await once(server, "listening");
  return server.address() as AddressInfo;
}

for (const host of ["127.0.0.1", "::1"]) {
  test(`a container at a port of ${host} is pinged and invoked`, async () => {
    const asked: string[] = [];
    const server = createServer((request, response) => {
      asked.push(`${request.method} ${request.url}`);
      request.resume().on("end", () => response.end("answer"));
    });
    const { port } = await listening(server, host);
    {
      await using client = new ContainerClient({ kind: "tcp", host, port }, containerLimits, {
        clock: systemClock,
        onChanged: () => {},
      });
      assert.equal(await client.ping(never), true);
      const reply = await client.invoke({
        path: "/invocations",
        headers: {},
        body: "question",
        isStreamed: false,
        signal: never,
      });
      assert.deepEqual([reply.status, await reply.body.text()], [200, "answer"]);
    }
    assert.deepEqual(asked, ["GET /ping", "POST /invocations"]);
    server.close();
    await once(server, "close");
  });
}

test("a ping without a response ends at its time limit by the clock", async () => {
  const timers = new Set<() => void>();
  const clock: Clock = {
    ...systemClock,
    timer(_, fire) {
      timers.add(fire);
      return { [Symbol.dispose]: () => void timers.delete(fire) };
    },
  };
  const asked = Promise.withResolvers<void>();
  const server = createServer(() => asked.resolve());
  const { port } = await listening(server, "127.0.0.1");
  {
    await using client = new ContainerClient({ kind: "tcp", host: "127.0.0.1", port }, containerLimits, {
      clock,
      onChanged: () => {},
    });
    const pinged = client.ping(never);
    await asked.promise;
    for (const fire of timers) fire();
    assert.equal(await pinged, false);
    assert.equal(timers.size, 0);
  }
  server.closeAllConnections();
  server.close();
  await once(server, "close");
});
