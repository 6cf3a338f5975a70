import assert from "node:assert/strict";
import { test } from "node:test";
import { systemClock } from "@galatea/base";
import { createLogLinks } from "./log-links.ts";

test("a link ends after a day", () => {
  let nowMs = Date.UTC(2026, 0, 1, 12, 30);
  const clock = { ...systemClock, epochMs: () => nowMs };
  const links = createLogLinks({ url: "http://h", secret: () => "secret", clock });
  const { pathname, search } = new URL(links.linkTo("/group with/#signs"));
  assert.equal(links.groupOf(pathname + search), "/group with/#signs");
  nowMs += 24 * 3600 * 1000;
  assert.equal(links.groupOf(pathname + search), "/group with/#signs");
  nowMs += 3600 * 1000;
  assert.equal(links.groupOf(pathname + search), null);
});
