import assert from "node:assert/strict";
import { test } from "node:test";
import { ByteBudget, ByteLease, silentLogger, systemClock } from "../../base/index.ts";
import type { InvocationReply, InvocationRequest } from "../invocations/index.ts";
import type { MirrorShare } from "./mirror-account.ts";
import { ShadowCalls } from "./shadow-calls.ts";

const told = { contentType: null, customAttributes: null, variantName: "s", openedSession: null, closedSession: null };
const reply: InvocationReply = {
  ...told,
  body: Buffer.alloc(0),
  byteLength: 0,
  done: () => {},
  begun: () => {},
  failed: (error) => error,
};

test("a shadow is asked at the path that its original was asked at, and part by part where that was", async () => {
  const asked: Pick<InvocationRequest, "containerPath" | "isStreamed">[] = [];
  const share = { memory: () => new ByteLease(new ByteBudget(1)), lose: () => {} } as unknown as MirrorShare;
  const ask = ({ containerPath = "none", isStreamed }: InvocationRequest) => {
    asked.push({ containerPath, isStreamed });
    return Promise.resolve(reply);
  };
  await using calls = new ShadowCalls({ ask, share, clock: systemClock, logger: silentLogger, callsMax: 2 });
  const plain = { headers: {}, targetModel: null, targetContainer: null, pieces: [] };
  const send = (request: Pick<InvocationRequest, "containerPath" | "isStreamed">) =>
    new Promise<void>((resolve) => {
      calls.send({ ...plain, ...request }, { take: ({ body }) => body, ended: resolve });
    });
  await send({ isStreamed: false });
  await send({ isStreamed: true, containerPath: "/v1/chat/completions" });
  assert.deepEqual(asked, [
    { containerPath: "none", isStreamed: false },
    { containerPath: "/v1/chat/completions", isStreamed: true },
  ]);
});
