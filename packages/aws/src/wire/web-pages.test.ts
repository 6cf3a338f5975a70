import assert from "node:assert/strict";
import { test } from "node:test";
import { rejectionOf, type HostAndOriginRules } from "./web-pages.ts";

const local: HostAndOriginRules = {
  hosts: new Set(["platform.example"]),
  anyAddress: false,
  allowsPage: (origin, url) => origin === "https://chat.example" && url === "/v1/models",
  verified: false,
};
const admits = (headers: Record<string, string>, rules = local, url = "/") =>
  rejectionOf({ url, headers }, rules) === null;

test("the loopback names and the platform's own names are accepted as Host, with and without ports", () => {
  for (const host of ["127.0.0.1:8770", "localhost", "LOCALHOST:1", "b.localhost:8770", "[::1]:8770", "127.8.9.10"])
    assert.ok(admits({ host }), host);
  for (const host of ["platform.example", "Platform.Example.:443"]) assert.ok(admits({ host }), host);
});

test("other host names are rejected, however similar", () => {
  for (const host of ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "xlocalhost", "10.0.0.1", ""])
    assert.ok(!admits({ host }), host);
  assert.ok(!admits({ host: "127.0.0.1" }, local, "http://evil.example/"), "the request line's own host");
  assert.match(rejectionOf({ url: "/", headers: { host: "a.b:1" } }, local) ?? "", /galatea up --allowed-host a\.b$/);
});

test("a platform that listens on other interfaces accepts its addresses as Host", () => {
  const rules = { ...local, anyAddress: true };
  assert.ok(admits({ host: "10.0.0.1:8770" }, rules));
  assert.ok(admits({ host: "[fe80::1]:8770" }, rules));
  assert.ok(!admits({ host: "evil.example" }, rules));
});

test("a request of a foreign web page is recognised by either header", () => {
  const host = "127.0.0.1:8770";
  for (const site of ["cross-site", "same-site"]) assert.ok(!admits({ host, "sec-fetch-site": site }), site);
  for (const site of ["same-origin", "none"]) assert.ok(admits({ host, "sec-fetch-site": site }), site);
  for (const origin of ["null", "http://evil.example", "http://127.0.0.1:3000", "https://127.0.0.1", "file://"])
    assert.ok(!admits({ host, origin }), origin);
  assert.ok(admits({ host, origin: `http://${host}` }));
});

test("pages of an allowed origin may send the allowed requests to a name of the platform", () => {
  const headers = { host: "platform.example", origin: "https://chat.example", "sec-fetch-site": "cross-site" };
  assert.ok(admits(headers, local, "/v1/models"));
  assert.ok(!admits(headers, local, "/bkt/key"));
  assert.ok(!admits({ ...headers, origin: "https://other.example" }, local, "/v1/models"));
  assert.ok(!admits({ ...headers, host: "evil.example" }, local, "/v1/models"));
});

test("a presigned URL is accepted from any origin if its signature is verified", () => {
  const headers = { host: "127.0.0.1", "sec-fetch-site": "cross-site" };
  const url = "/b/k?X-Amz-Signature=0";
  assert.ok(!admits(headers, local, url));
  assert.ok(admits(headers, { ...local, verified: true }, url));
  assert.ok(!admits({ ...headers, host: "evil.example" }, { ...local, verified: true }, url));
});
