import assert from "node:assert/strict";
import { test } from "node:test";
import { findDisabledIptables } from "./engine-firewall.ts";

const address = "unix:///run/docker.sock";
const none = async () => null;

test("a flag of the engine at the address switches its iptables rules off", async () => {
  const own = ["--host", "unix:///run/docker.sock", "--iptables=false"];
  const other = ["--host=unix:///run/other.sock"];
  assert.equal(await findDisabledIptables(address, [other, own], none), "dockerd's flag --iptables=false");
  assert.equal(await findDisabledIptables("unix:///run/other.sock", [other, own], none), null);
});

test("an engine that systemd gave its socket is the only one of the machine", async () => {
  const started = ["-H", "fd://", "--iptables=false"];
  assert.equal(await findDisabledIptables(address, [started], none), "dockerd's flag --iptables=false");
  assert.equal(await findDisabledIptables(address, [started, started], none), null);
  assert.equal(await findDisabledIptables(address, [], none), null);
});

test("the configuration file that the engine reads switches its iptables rules off", async () => {
  const read = async (path: string) => (path === "/etc/other.json" ? '{"iptables": false}' : '{"iptables": true}');
  const args = ["-H", "fd://", "--config-file", "/etc/other.json"];
  assert.equal(await findDisabledIptables(address, [args], read), '"iptables": false in /etc/other.json');
  assert.equal(await findDisabledIptables(address, [["-H", "fd://"]], read), null);
});
