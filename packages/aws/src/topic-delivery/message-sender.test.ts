import assert from "node:assert/strict";
import type { LookupAddress, LookupAllOptions } from "node:dns";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test, type TestContext } from "node:test";
import { testTimeoutMs } from "@galatea/base/core/eventually-fixture.ts";
import { rejectedAddress, createMessageSender } from "./message-sender.ts";

const neither = { toThisMachine: false, toPrivateNetworks: false };
const both = { toThisMachine: true, toPrivateNetworks: true };
const message = { headers: {}, body: "{}" };

/** Returns a resolver that knows one name. Each lookup returns the next list of addresses. */
function resolverOf(responses: readonly (readonly string[])[]) {
  let requestCount = 0;
  type Done = (error: Error | null, addresses: LookupAddress[]) => void;
  const resolve = (_name: string, _options: LookupAllOptions, done: Done) => {
    const addresses = responses[Math.min(requestCount++, responses.length - 1)] ?? [];
    done(
      null,
      addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 })),
    );
  };
  return resolve as unknown as NonNullable<Parameters<typeof createMessageSender>[1]>;
}

async function listening(t: TestContext, location = "") {
  let count = 0;
  const server = createServer((request, response) => {
    count += 1;
    request.resume();
    response.writeHead(location === "" ? 200 : 307, location === "" ? {} : { location }).end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => server.close());
  return { port: (server.address() as AddressInfo).port, requests: () => count };
}

test("link-local and private addresses are refused without the operator's flag, however they are written", () => {
  for (const address of [
    "10.0.0.1",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.1.1",
    "100.64.0.1",
    "169.254.1.1",
    "198.18.0.1",
    "224.0.0.1",
    "255.255.255.255",
    "::ffff:10.0.0.1",
    "::ffff:a00:1",
    "::a00:1",
    "64:ff9b::a00:1",
    "2002:a00:1::",
    "fc00::1",
    "fd12::1",
    "fe80::1",
    "fec0::1",
    "ff02::1",
  ]) {
    assert.equal(rejectedAddress(address, neither), "private-network", address);
    assert.equal(rejectedAddress(address, { ...neither, toThisMachine: true }), "private-network", address);
    assert.equal(rejectedAddress(address, both), null, address);
  }
  for (const address of ["172.15.0.1", "172.32.0.1", "192.169.0.1", "100.128.0.1", "8.8.8.8", "2606:4700::1111"])
    assert.equal(rejectedAddress(address, neither), null, address);
});

test("this machine has a flag of its own, and clouds' credentials have none", () => {
  for (const address of ["127.0.0.1", "127.9.9.9", "0.0.0.0", "::1", "::", "::ffff:127.0.0.1", "::ffff:7f00:1"]) {
    assert.equal(rejectedAddress(address, { ...both, toThisMachine: false }), "this-machine", address);
    assert.equal(rejectedAddress(address, { ...neither, toThisMachine: true }), null, address);
  }
  for (const address of [
    "169.254.169.254",
    "::ffff:169.254.169.254",
    "::ffff:a9fe:a9fe",
    "169.254.170.2",
    "fd00:ec2::254",
  ])
    assert.equal(rejectedAddress(address, both), "cloud-metadata", address);
});

test("a name that resolves to a private address, or to one among others, is sent nothing", async (t) => {
  const { port, requests } = await listening(t);
  const options = { ...neither, toThisMachine: true };
  for (const addresses of [["10.0.0.1"], ["127.0.0.1", "10.0.0.1"], ["fe80::1"]]) {
    const send = createMessageSender(options, resolverOf([addresses]));
    const outcome = await send(`http://inside.test:${port}/`, message, AbortSignal.timeout(testTimeoutMs));
    assert.equal(outcome.kind, "forbidden");
    assert.match(
      outcome.kind === "forbidden" ? outcome.why : "",
      /messages are not sent to \S+: --topics-to-private-networks lets messages go to link-local and private addresses/,
    );
  }
  assert.equal(requests(), 0);
});

test("a name that resolves elsewhere the next time is looked at as it is connected to", async (t) => {
  const { port, requests } = await listening(t);
  const send = createMessageSender({ ...neither, toThisMachine: true }, resolverOf([["127.0.0.1"], ["10.0.0.1"]]));
  const url = `http://rebound.test:${port}/`;
  assert.deepEqual(await send(url, message, AbortSignal.timeout(testTimeoutMs)), { kind: "answered", status: 200 });
  assert.equal((await send(url, message, AbortSignal.timeout(testTimeoutMs))).kind, "forbidden");
  assert.equal(requests(), 1);
});

test("a redirect is a response, and is not followed", async (t) => {
  const inside = await listening(t);
  const outside = await listening(t, `http://127.0.0.1:${inside.port}/`);
  const send = createMessageSender({ ...neither, toThisMachine: true });
  const outcome = await send(`http://127.0.0.1:${outside.port}/`, message, AbortSignal.timeout(testTimeoutMs));
  assert.deepEqual(outcome, { kind: "answered", status: 307 });
  assert.equal(inside.requests(), 0);
});
