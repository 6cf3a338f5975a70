import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { test } from "node:test";
import { ByteBudget, ByteLease, systemClock } from "@galatea/base";
import type { AgentContainer } from "../instance-agent/index.ts";
import { newChainHop, ContainerChain } from "./container-chain.ts";
import type { InvocationRequest } from "./invocation.ts";

type Invoke = AgentContainer["invoke"];

/** Returns a hop to a container that responds with `invoke`. For null, the container is not in service. */
function hopTo(containerName: string, invoke: Invoke | null) {
  const container = {
    view: { models: null },
    invoke: invoke ?? (() => Promise.reject(new Error(`${containerName} is not in service`))),
  } as unknown as AgentContainer;
  const location = {
    containerName,
    logGroup: "/aws/sagemaker/Endpoints/e",
    accountId: "",
    region: "",
    logStreamArn: "",
    logsLink: () => "",
  };
  return newChainHop({ container, place: location, modelDataUrl: "" });
}

/** Returns an `invoke` that responds with a stream of unknown length. */
const streaming =
  (body: Readable): Invoke =>
  () =>
    Promise.resolve({ status: 200, headers: {}, body });

const request: InvocationRequest = {
  headers: {},
  targetModel: null,
  targetVariant: null,
  targetContainer: null,
  isStreamed: false,
  body: () => assert.fail("the chain received the body"),
  memory: new ByteLease(new ByteBudget(2 ** 20)),
  receivedNs: 0,
  signal: new AbortController().signal,
};

const never = new AbortController().signal;
const chainOf = (...hops: ReturnType<typeof hopTo>[]) =>
  new ContainerChain({ hops, responseBytesMax: 2 ** 20, untilNs: Infinity, clock: systemClock, mayGoElsewhere: false });

test("a response that the next container cannot receive is destroyed with the chain", async () => {
  const endless = new Readable({ read() {} });
  const [first, second] = [hopTo("first", streaming(endless)), hopTo("second", null)];
  {
    using chain = chainOf(first, second);
    await assert.rejects(chain.send(request, Buffer.from(""), never), /second is not in service/);
  }
  assert.equal(endless.destroyed, true);
});

test("a request whose body breaks off fails for that reason, and its own container is not held responsible", async () => {
  const response = new Readable({ read() {} });
  let reason: unknown = null;
  const waits: Invoke = ({ signal }) =>
    new Promise((_resolve, reject) =>
      signal.addEventListener("abort", () => {
        reason = signal.reason;
        reject(reason);
      }),
    );
  const [first, second] = [hopTo("first", streaming(response)), hopTo("second", waits)];
  using chain = chainOf(first, second);
  const sent = chain.send(request, Buffer.from(""), never);
  setImmediate(() => response.destroy(new Error("the first broke off")));
  await assert.rejects(sent, /the first broke off/);
  assert.match(String(reason), /the first broke off/);
  assert.equal(chain.awaited, first);
});
