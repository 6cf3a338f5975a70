import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { apply, helm, kubectl, root } from "./installed-chart.ts";

const namespace = "serve";
const chart = join(root, "charts/galatea-serve");
const model = join(root, "examples/add_sub/models/add_sub");
const row = { datatype: "FP32", shape: [1, 4], data: [1, 2, 3, 4] };
const body = JSON.stringify({ inputs: ["INPUT0", "INPUT1"].map((name) => ({ name, ...row })) });

/** The model repository as a volume: the files of `add_sub` from a ConfigMap. Kubernetes adds hidden directories to its root. */
const volume = {
  configMap: {
    name: "models",
    items: [
      { key: "config.pbtxt", path: "repository/add_sub/config.pbtxt" },
      { key: "model.py", path: "repository/add_sub/1/model.py" },
    ],
  },
};

async function install(action: "install" | "upgrade", values: readonly string[]): Promise<void> {
  const flags = ["--namespace", namespace, "--wait", "--timeout", "120s"];
  const sets = [`models.volume=${JSON.stringify(volume)}`].flatMap((each) => ["--set-json", each]);
  await helm(
    action,
    "galatea-serve",
    chart,
    ...flags,
    ...sets,
    "--set",
    "models.subPath=repository",
    ...values.flatMap((each) => ["--set", each]),
  );
}

/** Sends one inference and returns the sums. */
async function infer(url: string): Promise<readonly number[]> {
  const response = await fetch(`${url}/v2/models/add_sub/infer`, { method: "POST", body });
  assert.equal(response.status, 200);
  const { outputs } = (await response.json()) as { readonly outputs: readonly { readonly data: readonly number[] }[] };
  return outputs[0]?.data ?? [];
}

test("helm rejects an installation without a volume of models, and unknown values", async () => {
  const rendered = (...values: readonly string[]) =>
    helm("template", "galatea-serve", chart, "--kube-version", "1.36.0", ...values);
  await assert.rejects(rendered(), /models\.volume is required/);
  await assert.rejects(rendered("--set", "models.bucket=b"), /additional properties 'bucket' not allowed/i);
  const options = ["--set", "autoscaling.enabled=true", "--set", "serviceMonitor.enabled=true"];
  const text = await rendered("--set-json", `models.volume=${JSON.stringify(volume)}`, ...options);
  assert.match(text, /kind: HorizontalPodAutoscaler/);
});

test("a model repository on a volume is served, and a rolling update fails no request", async (t) => {
  await kubectl("create", "namespace", namespace);
  t.after(async () => {
    await helm("uninstall", "galatea-serve", "--namespace", namespace, "--ignore-not-found");
    await kubectl("delete", "namespace", namespace, "--wait", "--timeout=90s");
  });
  const data = {
    "config.pbtxt": readFileSync(join(model, "config.pbtxt"), "utf8"),
    "model.py": readFileSync(join(model, "1/model.py"), "utf8"),
  };
  await apply({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "models", namespace }, data });
  const small = ["replicas=2", "resources.requests.cpu=100m", "resources.requests.memory=256Mi"];
  await install("install", small);
  const service = ["get", "service", "galatea-serve", "--output=jsonpath={.spec.clusterIP}"];
  const url = `http://${await kubectl("--namespace", namespace, ...service)}:8000`;
  assert.deepEqual(await infer(url), [2, 4, 6, 8]);

  const updating = new AbortController();
  let count = 0;
  const load = (async () => {
    for (; !updating.signal.aborted; count += 1) assert.deepEqual(await infer(url), [2, 4, 6, 8]);
  })();
  await Promise.race([install("upgrade", [...small, "podAnnotations.updated=yes"]), load]);
  updating.abort();
  await load;
  t.diagnostic(`${count} requests during the update, none failed`);
  assert.ok(count > 0);
});
