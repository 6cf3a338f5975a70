import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { ensureFramework } from "../environments/index.ts";
import { ScriptServer } from "./script-server.ts";

const json = { "Content-Type": "application/json" };
let server: ScriptServer;

before(async () => {
  await ensureFramework("sklearn");
  server = await ScriptServer.open("scikit-learn", {
    SAGEMAKER_TS_BATCH_SIZE: "4",
    SAGEMAKER_TS_MAX_BATCH_DELAY: "1000",
  });
});
after(() => server[Symbol.asyncDispose]());

/** A script that returns for each row its sum and the number of rows of its predict call. */
const script = (more: string) =>
  `${more}\ndef model_fn(d): return None\ndef predict_fn(data, m):\n    if (data < 0).any(): raise ValueError("negative")\n` +
  "    import numpy as np\n    return np.stack([data.sum(1), np.full(len(data), len(data))], 1)\n";

const send = (id: string, ...bodies: string[]) =>
  Promise.all(
    bodies.map(async (body) => {
      const reply = await server.invoke(id, body, json);
      return reply.status === 200 ? reply.body : `${reply.status} ${reply.body.split("\n")[0]}`;
    }),
  );

test("a script with joins_rows = True predicts the rows of several requests in one call", async () => {
  assert.equal((await server.load("joins", { "code/inference.py": script("joins_rows = True") })).status, 200);
  assert.deepEqual(await send("joins", "[[1, 2]]", "[[3, 4], [5, 6]]", "[[7, 8]]", "[[0, 1]]"), [
    "[[3.0, 5.0]]",
    "[[7.0, 5.0], [11.0, 5.0]]",
    "[[15.0, 5.0]]",
    "[[1.0, 5.0]]",
  ]);
});

test("in a joined batch an invalid request fails alone, and rows of another length are predicted separately", async () => {
  assert.deepEqual(await send("joins", "[[1, 2]]", "[[-1, 4]]", "[[7, 8]]", "nothing"), [
    "[[3.0, 1.0]]",
    "500 negative",
    "[[15.0, 1.0]]",
    "500 Expecting value: line 1 column 1 (char 0)",
  ]);
  assert.deepEqual(await send("joins", "[[1, 2]]", "[[1, 2, 3]]", "[[1]]", "[[4, 4]]"), [
    "[[3.0, 1.0]]",
    "[[6.0, 1.0]]",
    "[[1.0, 1.0]]",
    "[[8.0, 1.0]]",
  ]);
});

test("a script without joins_rows predicts for each request separately", async () => {
  assert.equal((await server.load("alone", { "code/inference.py": script("") })).status, 200);
  assert.deepEqual(await send("alone", "[[1, 2]]", "[[3, 4]]", "[[5, 6]]", "[[7, 8]]"), [
    "[[3.0, 1.0]]",
    "[[7.0, 1.0]]",
    "[[11.0, 1.0]]",
    "[[15.0, 1.0]]",
  ]);
});
