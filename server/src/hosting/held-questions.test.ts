import assert from "node:assert/strict";
import { test } from "node:test";
import { systemClock } from "../base/index.ts";
import { HeldQuestions, heldQuestionsLimits, type Asker } from "./held-questions.ts";

const { waiterMsMax, printerMsMax, shyMsMax, answersMax } = heldQuestionsLimits;
const awakeMsMax = 90_000;
const quietMsMax = 25_000;

const ignore = (_mayFail: boolean): void => {};

/** Questions over a time that is moved by hand, each of which would be held as long as it may. */
class Bench {
  nowMs = 1e12;
  readonly questions: HeldQuestions;

  constructor(limits = heldQuestionsLimits) {
    this.questions = new HeldQuestions({ ...systemClock, epochMs: () => this.nowMs }, limits);
  }

  /** How long the question may be held, after a pause. */
  async ask(
    asker: Partial<Asker>,
    { pauseMs = 0, stays = true, isLogged = false, more = true, see = ignore } = {},
  ): Promise<number> {
    this.nowMs += pauseMs;
    let heldMs = -1;
    await this.questions.hold({
      asker: { ...stranger(), ...asker },
      subject: "endpoint e",
      stays,
      isLogged,
      wait: ({ waitMsMax, mayFail }) => {
        heldMs = waitMsMax;
        see(mayFail);
        return Promise.resolve(more);
      },
    });
    return heldMs;
  }
}

const awake = () => ({ [Symbol.dispose]() {} });
const silent = { blanks: null, interims: null };
/** Takes blanks only. */
const stayAwake = { ...silent, blanks: awake };
const stranger = (): Asker => ({
  name: "key program",
  connection: { destroyed: false },
  isWaiter: false,
  printsLogs: false,
  awakeMsMax,
  quietMsMax,
  stayAwake,
  signal: new AbortController().signal,
});

test("a waiter is held as long as it may be each time, and a stranger for the first time", async () => {
  const bench = new Bench();
  assert.equal(await bench.ask({ isWaiter: true }), awakeMsMax);
  assert.equal(await bench.ask({ isWaiter: true }), awakeMsMax);
  assert.equal(await bench.ask({}), awakeMsMax);
  assert.equal(await bench.ask({ stayAwake: silent }), quietMsMax);
  assert.equal(await bench.ask({ isWaiter: true }, { stays: false }), quietMsMax);
});

test("who prints a log between its questions is held for a part of a minute, and not at all once it is seen to print", async () => {
  const bench = new Bench();
  const printer = { isWaiter: true, printsLogs: true, connection: { destroyed: false } };
  const of = { isLogged: true };
  assert.equal(await bench.ask(printer), awakeMsMax);
  assert.equal(await bench.ask(printer, { ...of, pauseMs: 5000 }), printerMsMax);
  assert.equal(await bench.ask(printer, { ...of, pauseMs: 30_000 }), 0);
  assert.equal(await bench.ask(printer, { ...of, pauseMs: 5000 }), printerMsMax);
  assert.equal(await bench.ask({ ...printer, printsLogs: false }, { ...of, pauseMs: 60_000 }), waiterMsMax);
});

test("blanks are for an answer that is no error, and interim responses for any", async () => {
  const bench = new Bench();
  const sent: string[] = [];
  const way = (name: string) => () => {
    sent.push(name);
    return awake();
  };
  const both = { isWaiter: true, stayAwake: { blanks: way("blanks"), interims: way("interims") } };
  const interims = { ...both, stayAwake: { ...both.stayAwake, blanks: null } };
  const told: boolean[] = [];
  const see = (mayFail: boolean) => void told.push(mayFail);
  assert.equal(await bench.ask(both, { see }), awakeMsMax);
  assert.equal(await bench.ask(both, { stays: false, see }), awakeMsMax);
  assert.equal(await bench.ask(interims, { see }), awakeMsMax);
  assert.equal(await bench.ask({ stayAwake: silent }, { stays: false, see }), quietMsMax);
  assert.deepEqual(sent, ["blanks", "interims", "interims"]);
  assert.deepEqual(told, [false, true, true, true]);
});

test("who asks often is held for no longer than the pause, and who pauses like a waiter as a waiter is", async () => {
  const bench = new Bench();
  const asker = { connection: { destroyed: false } };
  await bench.ask(asker);
  assert.equal(await bench.ask(asker, { pauseMs: 1000 }), 1000);
  assert.equal(await bench.ask(asker, { pauseMs: 5000 }), 5000);
  assert.equal(await bench.ask(asker, { pauseMs: 30_000 }), waiterMsMax);
  assert.equal(await bench.ask({ ...asker, isWaiter: true }, { pauseMs: 1 }), awakeMsMax);
});

test("a dashboard that asks every second with the key and the program of another does not shorten the other's hold", async () => {
  const bench = new Bench();
  const dashboard = { connection: { destroyed: false } };
  const waiting = { connection: { destroyed: false } };
  await bench.ask(waiting);
  for (let second = 0; second < 30; second++) await bench.ask(dashboard, { pauseMs: 1000 });
  assert.equal(await bench.ask(waiting), waiterMsMax);
  assert.equal(await bench.ask({ connection: { destroyed: false } }), awakeMsMax);
});

test("a program that makes a connection for each question is known by its name", async () => {
  const bench = new Bench();
  const first = { destroyed: false };
  await bench.ask({ connection: first });
  first.destroyed = true;
  assert.equal(await bench.ask({ connection: { destroyed: false } }, { pauseMs: 2000 }), 2000);
  assert.equal(await bench.ask({ name: "another" }), awakeMsMax);
});

test("when there is no more to come nothing is remembered", async () => {
  const bench = new Bench();
  const asker = { connection: { destroyed: false } };
  await bench.ask(asker, { more: false });
  assert.equal(await bench.ask(asker), awakeMsMax);
});

test("who left while it was held is held briefly when it asks again, and as others are after that", async () => {
  const bench = new Bench();
  const connection = { destroyed: false };
  const left = new AbortController();
  left.abort();
  await bench.ask({ isWaiter: true, connection, signal: left.signal });
  connection.destroyed = true;
  const again = { isWaiter: true, connection: { destroyed: false } };
  assert.equal(await bench.ask(again), shyMsMax);
  assert.equal(await bench.ask(again, { pauseMs: 30_000 }), waiterMsMax);
});

test("a bounded number is kept awake, and of a bounded number of answers is known when they were", async () => {
  const bench = new Bench({ ...heldQuestionsLimits, awakeCountMax: 1 });
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const asker = { ...stranger(), isWaiter: true };
  const held = bench.questions.hold({
    asker,
    subject: "endpoint e",
    stays: true,
    isLogged: false,
    wait: () => promise,
  });
  assert.equal(await bench.ask({ isWaiter: true }), quietMsMax);
  resolve(false);
  await held;
  assert.equal(await bench.ask({ isWaiter: true }), awakeMsMax);
  const first = { connection: { destroyed: false } };
  await bench.ask(first);
  for (let count = 0; count < answersMax; count++) await bench.ask({ isWaiter: true });
  assert.equal(await bench.ask(first, { pauseMs: 1000 }), awakeMsMax);
});
