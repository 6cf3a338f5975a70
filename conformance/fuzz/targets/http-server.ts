import assert from "node:assert/strict";
import * as fc from "fast-check";
import { inferBodies, type InferBody } from "../infer-bodies.ts";
import { sendRequest } from "../../faults/http-client.ts";
import type { Serving } from "../../faults/serving.ts";
import { rarely } from "../mutations.ts";
import { attackServer } from "../served.ts";
import type { FuzzTarget } from "../target.ts";

/** The documented responses to an inference over HTTP, from the tables of codes and reasons. */
const statuses: ReadonlySet<number> = new Set([200, 400, 404, 413, 500, 501, 503]);

interface Input extends InferBody {
  readonly encoding: string | null;
}

/** Whole requests over sockets: listener, body, scheduler, worker and response. */
export const httpServer: FuzzTarget<Input> = {
  name: "http-server",
  about: "inference over HTTP against a server with a Python model",
  share: 0.03,
  inputs: fc
    .tuple(inferBodies, rarely(null, 10, fc.constantFrom("gzip", "deflate", "br", "identity", "")))
    .map(([body, encoding]) => ({ ...body, encoding })),
  open: () => attackServer(attempt),
};

async function attempt({ bytes, headerText, encoding }: Input, { server }: Serving): Promise<boolean> {
  const headers = {
    ...(headerText === null ? {} : { "inference-header-content-length": headerText }),
    ...(encoding === null ? {} : { "content-encoding": encoding }),
  };
  const { status, body } = await sendRequest(server.httpPort, { path: "/v2/models/echo/infer", body: bytes, headers });
  assert.ok(statuses.has(status), `status ${status}: ${body.toString("latin1", 0, 300)}`);
  if (status === 200) return true;
  const { error } = JSON.parse(body.toString()) as { error: unknown };
  assert.ok(typeof error === "string" && error !== "");
  assert.doesNotMatch(error, /^bug: |Stub process|^Cannot read|is not a function|RangeError|TypeError/);
  return false;
}
