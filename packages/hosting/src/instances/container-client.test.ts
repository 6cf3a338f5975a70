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
    const requested: string[] = [];
    const server = createServer((request, response) => {
      requested.push(`${request.method} ${request.url}`);
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
    assert.deepEqual(requested, ["GET /ping", "POST /invocations"]);
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
  const requested = Promise.withResolvers<void>();
  const server = createServer(() => requested.resolve());
  const { port } = await listening(server, "127.0.0.1");
  {
    await using client = new ContainerClient({ kind: "tcp", host: "127.0.0.1", port }, containerLimits, {
      clock,
      onChanged: () => {},
    });
    const pinged = client.ping(never);
    await requested.promise;
    for (const fire of timers) fire();
    assert.equal(await pinged, false);
    assert.equal(timers.size, 0);
  }
  server.closeAllConnections();
  server.close();
  await once(server, "close");
});

/** Lists the models of a container that responds to a listing with `pageAfter` of the token. */
async function listedModels(pageAfter: (token: string | null) => object): Promise<readonly string[]> {
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? "", "http://container");
    response.end(pathname === "/models" ? JSON.stringify(pageAfter(searchParams.get("next_page_token"))) : "{}");
  });
  const { port } = await listening(server, "127.0.0.1");
  try {
    await using client = new ContainerClient({ kind: "tcp", host: "127.0.0.1", port }, containerLimits, {
      clock: systemClock,
      onChanged: () => {},
    });
    return (await client.models(never)).map(({ id }) => id);
  } finally {
    server.close();
    await once(server, "close");
  }
}

test("models that a container lists in pages are all listed", async () => {
  const pages = new Map<string | null, object>([
    [null, { models: [{ modelName: "a" }, { modelName: "b" }], nextPageToken: "2 & more" }],
    ["2 & more", { models: [{ modelName: "c" }], nextPageToken: "3" }],
    ["3", { models: [{ modelName: "d" }] }],
  ]);
  assert.deepEqual(await listedModels((token) => pages.get(token) ?? {}), ["a", "b", "c", "d"]);
});

test("a container whose listing of models has no end is rejected", async () => {
  await assert.rejects(
    listedModels(() => ({ models: [], nextPageToken: "again" })),
    { message: "the container lists its models in more than 1000 pages" },
  );
});
