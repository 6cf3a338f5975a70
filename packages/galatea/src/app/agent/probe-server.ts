import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";

/**
 * Responds to Kubernetes probes over plain HTTP. `/healthz` succeeds while the process runs, `/readyz` while the agent
 * accepts instances.
 */
export class ProbeServer implements AsyncDisposable {
  readonly #server: Server;
  #isReady = true;

  private constructor() {
    this.#server = createServer((request, response) => {
      const status = this.#statusOf(request.url ?? "");
      response.writeHead(status, { "content-type": "text/plain" }).end(texts[status]);
    });
  }

  static async open(address: { readonly host: string; readonly port: number }): Promise<ProbeServer> {
    const probes = new ProbeServer();
    probes.#server.listen(address);
    await once(probes.#server, "listening");
    return probes;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Makes `/readyz` respond with 503. */
  drain(): void {
    this.#isReady = false;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
    await once(this.#server, "close");
  }

  #statusOf(url: string): keyof typeof texts {
    if (url === "/healthz") return 200;
    if (url !== "/readyz") return 404;
    return this.#isReady ? 200 : 503;
  }
}

const texts = {
  200: "ok\n",
  404: "The agent has /healthz and /readyz here\n",
  503: "The agent is shutting down\n",
} as const;
