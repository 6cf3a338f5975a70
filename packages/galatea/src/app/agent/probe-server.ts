import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";

/**
 * Responds to Kubernetes probes over plain HTTP. `/healthz` succeeds while the process runs, `/readyz` while the agent
 * accepts instances, and `/servingz` while it also has instances and all of them are in service.
 */
export class ProbeServer implements AsyncDisposable {
  readonly #server: Server;
  readonly #isServing: () => boolean;
  #isReady = true;

  private constructor(isServing: () => boolean) {
    this.#isServing = isServing;
    this.#server = createServer((request, response) => {
      const status = this.#statusOf(request.url ?? "");
      response.writeHead(status, { "content-type": "text/plain" }).end(texts[status]);
    });
  }

  static async open(
    address: { readonly host: string; readonly port: number },
    isServing: () => boolean,
  ): Promise<ProbeServer> {
    const probes = new ProbeServer(isServing);
    probes.#server.listen(address);
    await once(probes.#server, "listening");
    return probes;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Makes `/readyz` and `/servingz` respond with 503. */
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
    if (url === "/readyz") return this.#isReady ? 200 : 503;
    if (url === "/servingz") return this.#isReady && this.#isServing() ? 200 : 503;
    return 404;
  }
}

const texts = {
  200: "ok\n",
  404: "The agent has /healthz, /readyz and /servingz here\n",
  503: "The agent is shutting down, or its instances are not in service\n",
} as const;
