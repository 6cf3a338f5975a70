import { sendRequest } from "../send-request.ts";
import { tenantEnsemble } from "../models.ts";
import { pipelineBody } from "../requests.ts";
import type { BenchModels } from "../servers.ts";

export const weightBytesMin = 256 * 1024;
export const weightBytesMax = 4 * 1024 * 1024;
/** Bytes of one row of weights. */
const rowBytes = 64;

/**
 * Returns the weights of a tenant: always the same for one tenant, and of unequal size and content for two. Sizes are
 * distributed evenly on a logarithmic scale, independently of popularity.
 */
export function tenantWeights(tenant: number): Uint8Array {
  const position = (tenant * 0.618034) % 1;
  const bytes = weightBytesMin * (weightBytesMax / weightBytesMin) ** position;
  const words = new Uint32Array((Math.round(bytes / rowBytes) * rowBytes) / 4);
  let state = tenant + 1;
  for (let index = 0; index < words.length; index++) {
    // Xorshift: random bits, of which the exponent is fixed so that each is a float of at least 0.5 and below 1, or negative.
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    words[index] = (state & 0x807fffff) | 0x3f000000;
  }
  new Float32Array(words.buffer)[0] = tenant;
  return new Uint8Array(words.buffer);
}

export const tenantModels = (tenant: number, suffix = ""): BenchModels => tenantEnsemble(tenantWeights(tenant), suffix);

/** A response that a client received, or the reason for its absence. */
export interface TenantResponse {
  readonly tenant: number;
  readonly tookMs: number;
  /** True if the model had sent no response since its load. */
  readonly isFirst: boolean;
  readonly failure: string | null;
}

/** Sends one request to a tenant's ensemble, and checks that the response was computed with the tenant's weights. */
export async function invokeTenant(
  tenant: number,
  to: { readonly port: number; readonly path: string; readonly headers: Readonly<Record<string, string>> },
): Promise<TenantResponse> {
  const startMs = performance.now();
  const { status, body } = await sendRequest(to.port, "POST", to.path, pipelineBody, to.headers);
  const tookMs = performance.now() - startMs;
  const failed = (failure: string) => ({ tenant, tookMs, isFirst: false, failure });
  if (status !== 200) return failed(`${status} ${body.toString("utf8").slice(0, 300)}`);
  const { outputs } = JSON.parse(body.toString("utf8")) as { outputs: { name: string; data: number[] }[] };
  const numberOf = (name: string) => outputs.find((output) => output.name === name)?.data[0];
  if (numberOf("TENANT") !== tenant) return failed(`the weights of tenant ${numberOf("TENANT")} made the response`);
  return { tenant, tookMs, isFirst: numberOf("ANSWERS") === 1, failure: null };
}
