import assert from "node:assert/strict";
import { test } from "node:test";
import {
  installerEnvironment,
  modelEnvironment,
  passedEnvironment,
  platformContainerEnvironment,
  runnerEnvironment,
} from "./passed-environment.ts";

const operators = {
  PATH: "/bin",
  HOME: "/home/operator",
  PIP_INDEX_URL: "https://operator:secret@index/simple",
  UV_INDEX: "https://index",
  HTTPS_PROXY: "http://proxy",
};
const owners = {
  HOME: "/home/owner",
  HTTPS_PROXY: "http://owner",
  SSL_CERT_FILE: "/owner.pem",
  TMPDIR: "/owner",
  MODEL: "m",
};

test("in a platform's container installers have the operator's environment, whatever its owner says", () => {
  const container = platformContainerEnvironment(passedEnvironment(operators), owners);
  assert.deepEqual(installerEnvironment(container), operators);
});

test("model code has its owner's variables, and nothing of what installers are configured by", () => {
  const container = platformContainerEnvironment(operators, owners);
  assert.deepEqual(modelEnvironment(container), { PATH: "/bin", ...owners });
  assert.deepEqual(runnerEnvironment(container), { PATH: "/bin", ...owners });
});

test("a variable of the owner's cannot say what installers run with", () => {
  const container = platformContainerEnvironment(operators, { GALATEA_INSTALLER_ENVIRONMENT: '{"HOME":"/evil"}' });
  assert.equal(installerEnvironment(container)["HOME"], "/home/operator");
});

test("a server that no platform started gives installers its own environment", () => {
  assert.deepEqual(installerEnvironment({ ...operators, AWS_SECRET_ACCESS_KEY: "s" }), operators);
});
