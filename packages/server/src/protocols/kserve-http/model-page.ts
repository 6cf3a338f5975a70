import { statusPage, statusPageHeaders, statusRowsMax } from "@galatea/base/status-page";
import type { Engine } from "../../engine/index.ts";
import { reply, type Exchange } from "../http-listener/index.ts";

const { "Content-Type": contentType, ...headers } = statusPageHeaders;
const extraHeaders = Object.entries(headers).flat();

const links = [
  { href: "/v2", text: "Server metadata" },
  { href: "/v2/models/stats", text: "Statistics of the models" },
  {
    href: "https://github.com/kserve/open-inference-protocol/blob/main/specification/protocol/inference_rest.md",
    text: "The inference protocol",
  },
  {
    href: "https://github.com/triton-inference-server/server/blob/main/docs/user_guide/model_configuration.md",
    text: "Model configuration",
  },
];

/** Sends an HTML page for browsers, which lists the models with their states, failed ones first. Triton has no such page. */
export async function sendModelPage(exchange: Exchange, engine: Engine): Promise<void> {
  const { name, version } = engine.serverMetadata();
  const models = await engine.repositoryIndex(false);
  const failed = models.filter(
    ({ state, reason }) => state === "UNAVAILABLE" && reason !== "" && reason !== "unloaded",
  );
  const ready = models.filter(({ state }) => state === "READY");
  const shown = [...new Set([...failed, ...ready, ...models])].slice(0, statusRowsMax);
  const html = statusPage({
    title: `Galatea ${version}`,
    facts: [
      ["server", name],
      ["state", engine.ready ? "ready" : "not ready"],
      ["model versions", `${ready.length} ready, ${failed.length} failed, ${models.length} in all`],
    ],
    table: {
      heading: "Models",
      columns: ["name", "version", "state", "reason"],
      rows: shown.map((entry) => [entry.name, entry.version, entry.state, entry.reason]),
      rowCount: models.length,
      emptyText: "The repository has no models.",
    },
    links,
  });
  reply(exchange, 200, contentType, Buffer.from(html), extraHeaders);
}
