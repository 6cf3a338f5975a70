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

test("package installers in a platform's container run with the operator's environment, whatever variables its owner sets", () => {
  const container = platformContainerEnvironment(passedEnvironment(operators), owners);
  assert.deepEqual(installerEnvironment(container), operators);
});

test("model code gets its owner's variables and none that configure installers", () => {
  const container = platformContainerEnvironment(operators, owners);
  assert.deepEqual(modelEnvironment(container), { PATH: "/bin", ...owners });
  assert.deepEqual(runnerEnvironment(container), { PATH: "/bin", ...owners });
});

test("a model's variable GALATEA_INSTALLER_ENVIRONMENT does not change the environment of pip and uv", () => {
  const container = platformContainerEnvironment(operators, { GALATEA_INSTALLER_ENVIRONMENT: '{"HOME":"/evil"}' });
  assert.equal(installerEnvironment(container)["HOME"], "/home/operator");
});

test("a server outside of a platform gives installers its own environment without AWS credentials", () => {
  assert.deepEqual(installerEnvironment({ ...operators, AWS_SECRET_ACCESS_KEY: "s" }), operators);
});
