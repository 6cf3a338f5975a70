import assert from "node:assert/strict";
import * as fc from "fast-check";
import type { Serving } from "../../faults/serving.ts";
import { grpcStatus } from "../../../packages/server/src/protocols/grpc-listener/status.ts";
import { callGrpc, frameMessage } from "../../../packages/server/src/protocols/raw-grpc-client.ts";
import { inferMessages } from "../infer-messages.ts";
import { mutated } from "../mutations.ts";
import { attackServer } from "../served.ts";
import type { FuzzTarget } from "../target.ts";

const methods = [
  "ModelInfer",
  "ModelInfer",
  "ModelInfer",
  "ModelStreamInfer",
  "ModelStreamInfer",
  "ModelMetadata",
  "ModelConfig",
  "ModelStatistics",
  "RepositoryIndex",
  "ModelReady",
] as const;
const statuses: ReadonlySet<number> = new Set(Object.values(grpcStatus));
const callTimeoutMs = 20_000;

interface Input {
  readonly method: (typeof methods)[number];
  readonly body: Buffer;
}

/** Whole calls over HTTP/2: frames, messages, statuses, streams with several messages. */
export const grpcServer: FuzzTarget<Input> = {
  name: "grpc-server",
  about: "gRPC calls against a server with a Python model",
  share: 0.02,
  inputs: fc.record({
    method: fc.constantFrom(...methods),
    body: fc.oneof(
      {
        weight: 3,
        arbitrary: fc
          .array(inferMessages, { minLength: 1, maxLength: 3 })
          .map((messages) => Buffer.concat(messages.map((message) => frameMessage(message)))),
      },
      {
        weight: 1,
        arbitrary: mutated(
          inferMessages.map((message) => frameMessage(message)),
          [Uint8Array.of(1, 0, 0, 0, 0), Uint8Array.of(0, 0, 0, 0, 0), Uint8Array.of(0, 0xff, 0xff, 0xff, 0xff)],
        ),
      },
    ),
  }),
  open: () => attackServer(attempt),
};

async function attempt({ method, body }: Input, { server }: Serving): Promise<boolean> {
  const path = `/inference.GRPCInferenceService/${method}`;
  const reply = await callGrpc(server.grpcPort, { path, body, metadata: {}, timeoutMs: callTimeoutMs });
  assert.ok(statuses.has(reply.status), `status ${reply.status}`);
  if (reply.status === 0) return true;
  assert.doesNotMatch(reply.message, /^bug: |Stub process|^Cannot read|is not a function|RangeError|TypeError/);
  return false;
}
