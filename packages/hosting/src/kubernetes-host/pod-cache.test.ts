import assert from "node:assert/strict";
import { setImmediate as tick } from "node:timers/promises";
import { test } from "node:test";
import { createLogger } from "@galatea/base";
import { SteppedClock } from "@galatea/base/core/stepped-clock-fixture.ts";
import type { ClusterApi, ListedPods, PodWatchOptions } from "./cluster-api.ts";
import { PodCache } from "./pod-cache.ts";
import { instanceLabels, type Pod } from "./pod.ts";

const pod = (name: string): Pod => ({ metadata: { name, labels: { [instanceLabels.instance]: "i-1" } } });
const silence = () => new DOMException("The operation was aborted due to timeout", "TimeoutError");

/** A fake API. The test decides the results of its lists and watches. */
class ScriptedApi {
  pods: readonly Pod[] = [];
  failure: Error | null = null;
  listCount = 0;
  /** Called during a list call, before the call returns. */
  whileListing = () => {};
  #watch: { readonly options: PodWatchOptions; readonly ended: PromiseWithResolvers<void> } | null = null;

  listPods(): Promise<ListedPods> {
    this.listCount += 1;
    if (this.failure !== null) return Promise.reject(this.failure);
    const { pods } = this;
    this.whileListing();
    return Promise.resolve({ pods, version: String(this.listCount) });
  }

  async watchPods(options: PodWatchOptions): Promise<void> {
    const ended = Promise.withResolvers<void>();
    this.#watch = { options, ended };
    options.signal.addEventListener("abort", () => ended.reject(options.signal.reason as Error));
    await ended.promise;
  }

  get version(): string | undefined {
    return this.#watch?.options.version;
  }

  report(kind: "ADDED" | "DELETED", changed: Pod): void {
    this.#watch?.options.onChange({ kind, pod: changed });
  }

  endWatch(error: Error | null): void {
    if (error === null) this.#watch?.ended.resolve();
    else this.#watch?.ended.reject(error);
  }
}

async function opened(api: ScriptedApi) {
  const clock = new SteppedClock();
  const lines: string[] = [];
  const cache = await PodCache.open({
    api: api as unknown as ClusterApi,
    selector: "a=b",
    clock,
    logger: createLogger((level, message) => lines.push(`${level} ${message}`)),
  });
  await tick();
  const names = () => cache.all.map(({ metadata }) => metadata.name);
  const advance = async (byMs: number) => {
    clock.advance(byMs);
    await tick();
  };
  return { cache, names, lines, advance, [Symbol.asyncDispose]: () => cache[Symbol.asyncDispose]() };
}

test("a watch that ends, or that is silent, is followed by a list with the changes that it missed", async () => {
  const api = new ScriptedApi();
  api.pods = [pod("a")];
  await using subject = await opened(api);
  assert.deepEqual([subject.names(), api.version], [["a"], "1"]);
  api.report("ADDED", pod("b"));
  api.report("DELETED", pod("a"));
  assert.deepEqual(subject.names(), ["b"]);
  api.pods = [pod("c")];
  for (const [index, error] of [null, silence()].entries()) {
    api.endWatch(error);
    await tick();
    await subject.advance(1000);
    assert.deepEqual([subject.names(), api.version], [["c"], String(index + 2)]);
  }
  assert.deepEqual(subject.lines, []);
});

test("while the API does not respond the cache stays, the log has one line, and calls become rare", async () => {
  const api = new ScriptedApi();
  api.pods = [pod("a")];
  await using subject = await opened(api);
  api.failure = new Error("connect ECONNREFUSED");
  api.endWatch(new Error("the connection broke"));
  await tick();
  for (let second = 0; second < 600; second += 1) await subject.advance(1000);
  assert.deepEqual(subject.names(), ["a"]);
  assert.ok(api.listCount > 30 && api.listCount < 50, `${api.listCount} lists in 10 minutes`);
  assert.deepEqual(subject.lines, ["warning the Kubernetes API does not respond; instances continue"]);
  api.failure = null;
  api.pods = [];
  await subject.advance(15_000);
  assert.deepEqual(subject.names(), []);
  assert.equal(subject.lines.at(-1), "info the Kubernetes API responds again");
});

test("a pod that is created while a list is read stays in the cache", async () => {
  const api = new ScriptedApi();
  await using subject = await opened(api);
  api.whileListing = () => subject.cache.add(pod("new"));
  api.endWatch(null);
  await tick();
  await subject.advance(1000);
  assert.deepEqual(subject.names(), ["new"]);
  assert.deepEqual(subject.cache.ofInstance("i-1"), [pod("new")]);
  api.whileListing = () => {};
  api.endWatch(null);
  await tick();
  await subject.advance(1000);
  assert.deepEqual(subject.names(), [], "the next list is newer than the creation");
});
