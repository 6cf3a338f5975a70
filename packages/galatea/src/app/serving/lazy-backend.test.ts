import assert from "node:assert/strict";
import { test } from "node:test";
import type { Backend } from "@galatea/server/backends";
import { lazyBackend } from "./lazy-backend.ts";

function lazy(mayWarmUp?: () => Promise<boolean>) {
  const reported: string[] = [];
  const unasked = () => Promise.reject(new Error("no model was requested"));
  const real: Backend = {
    name: "echo",
    complete: unasked,
    estimateBytes: unasked,
    load: unasked,
    warmUp: () => Promise.resolve(void reported.push("warm")),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
  const open = () => {
    reported.push("opened");
    return Promise.resolve(real);
  };
  return { backend: lazyBackend({ name: "echo", open, ...(mayWarmUp && { mayWarmUp }) }), told: reported };
}

test("a backend is warmed up at the start only if mayWarmUp returns true", async () => {
  for (const [mayWarmUp, expected] of [
    [undefined, []],
    [() => Promise.resolve(false), []],
    [() => Promise.resolve(true), ["opened", "warm"]],
  ] as const) {
    const { backend, told } = lazy(mayWarmUp);
    await backend.warmUp();
    assert.deepEqual(told, expected);
    await backend[Symbol.asyncDispose]();
  }
});

test("a backend that is disposed while mayWarmUp is pending is not opened", async () => {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const { backend, told } = lazy(() => promise);
  const warming = backend.warmUp();
  await backend[Symbol.asyncDispose]();
  resolve(true);
  await warming;
  assert.deepEqual(told, []);
});
