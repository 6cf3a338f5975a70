/** A failure is one event in the log, although several modules of the server detect it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { faultyRequest, errorOf, infer, textOf } from "./http-client.ts";
import { writeFaultyModel } from "./faulty-model.ts";
import { openServing } from "./serving.ts";
import { until } from "./until.ts";

const count = (log: string, text: string) => log.split(text).length - 1;

test("a model that fails to load at the start is logged once, and so is a worker that dies", async () => {
  await using serving = await openServing({
    flags: ["--exit-on-error=false", "--model-control-mode=explicit", "--load-model=bad", "--load-model=dies"],
    write: async ({ repository }) => {
      await writeFaultyModel(repository, "bad", { text: "raise ValueError('an unlucky module')" });
      await writeFaultyModel(repository, "dies", {});
    },
  });
  const { httpPort } = serving.server;
  await until("the failure is in the log", () => serving.server.log().includes("an unlucky module"));
  const pid = Number(textOf(await infer(httpPort, "dies", faultyRequest("pid"))));
  process.kill(pid, "SIGKILL");
  await until("the worker's death is in the log", () => serving.server.log().includes("signal SIGKILL"));
  await until("another worker responds", async () => {
    const response = await infer(httpPort, "dies", faultyRequest("pid"));
    if (response.status === 200) return true;
    errorOf(response, 500);
    return false;
  });
  for (const message of ["an unlucky module", "signal SIGKILL"])
    assert.equal(count(serving.server.log(), message), 1, serving.server.log());
});
