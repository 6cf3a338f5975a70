import { assert } from "@galatea/base";
import type { ModelledService, RawService, ServiceRow } from "./service-row.ts";

/** The rows of the platform's services, and how requests name them. */
export class ServiceTable {
  /** Takes what no other service does. */
  readonly fallback: RawService | null;
  readonly #byScope = new Map<string, ServiceRow[]>();
  readonly #byTarget = new Map<string, ModelledService>();
  readonly #byVersion = new Map<string, ModelledService>();
  readonly #byPath: { readonly service: RawService; readonly path: RegExp }[] = [];

  constructor(rows: readonly ServiceRow[]) {
    for (const row of rows) {
      this.#byScope.set(row.scope, [...(this.#byScope.get(row.scope) ?? []), row]);
      if (row.kind === "raw") {
        const uris = Object.values(row.model?.operations ?? {}).map(({ uri }) => uri);
        if (uris.length > 0) this.#byPath.push({ service: row, path: pathPattern(uris) });
        continue;
      }
      const { targetPrefix, protocols, apiVersion } = row.model;
      if (targetPrefix !== undefined) this.#byTarget.set(targetPrefix, row);
      if (protocols.includes("query")) this.#byVersion.set(apiVersion, row);
    }
    const fallbacks = rows.filter((row) => row.kind === "raw").filter((row) => row.model === null);
    assert(fallbacks.length <= 1, "two services take what no other does");
    this.fallback = fallbacks[0] ?? null;
  }

  /** The modelled service that is signed for by that name. */
  ofScope(scope: string): ModelledService | null {
    return this.#byScope.get(scope)?.find((row) => row.kind === "modelled") ?? null;
  }

  /** By what stands before the dot in X-Amz-Target, which is also the name in the paths of RPC protocols. */
  ofTarget(prefix: string): ModelledService | null {
    return this.#byTarget.get(prefix) ?? null;
  }

  /** By the Version of a form. */
  ofVersion(version: string): ModelledService | null {
    return this.#byVersion.get(version) ?? null;
  }

  ofPath(path: string, scope: string | null): RawService | null {
    const found = this.#byPath.find(
      ({ service, path: pattern }) => (scope === null || scope === service.scope) && pattern.test(path),
    );
    return found?.service ?? null;
  }
}

/** `/endpoints/{EndpointName}/invocations` and the like with any one segment for each label. */
function pathPattern(uris: readonly string[]): RegExp {
  const patterns = uris.map((uri) =>
    uri
      .split(/\{[^}]+\}/)
      .map((text) => RegExp.escape(text))
      .join("[^/]+"),
  );
  return new RegExp(`^(?:${patterns.join("|")})$`);
}
