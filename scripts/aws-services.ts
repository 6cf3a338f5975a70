import { registerHooks } from "node:module";

/** Paths of the published service models and of the types that are generated from them. */
export const specFolder = new URL("../packages/aws/src/spec/gen/", import.meta.url);

/** A stand-in for the dependencies of a service. Its rows are read, and none of them is called. */
const anyPart: unknown = new Proxy(function part() {}, {
  get: (_, key) => {
    if (key === Symbol.iterator) return [][Symbol.iterator].bind([]);
    // A promise in the stand-in is already resolved.
    return key === "then" ? undefined : anyPart;
  },
  apply: () => anyPart,
  construct: () => anyPart as object,
});

/** Returns the rows of the services, whose operations cannot be called. */
export async function serviceRows() {
  const { awsServices } = await import("@galatea/aws");
  return awsServices(anyPart as Parameters<typeof awsServices>[0]);
}

/**
 * The operations of each AWS service that the platform implements, by boto3's name of the service: those with a row.
 * All other operations of a service are rejected by name. Services are imported over empty models, because their models
 * are generated from the result.
 */
export async function builtOperations(): Promise<ReadonlyMap<string, readonly string[]>> {
  const empty = new Set<string>();
  const hooks = registerHooks({
    resolve(specifier, context, next) {
      const isModel = /\/spec\/gen\/[\w-]+\.json$/.test(specifier) && context.parentURL !== undefined;
      if (!isModel) return next(specifier, context);
      const { importAttributes } = context;
      return { url: new URL(specifier, context.parentURL).href, format: "json", importAttributes, shortCircuit: true };
    },
    load(url, context, next) {
      const [, service] = /\/spec\/gen\/([\w-]+)\.json$/.exec(url) ?? [];
      if (service === undefined) return next(url, context);
      empty.add(service);
      const source = JSON.stringify({
        service,
        protocols: [],
        operations: {},
        otherOperations: [],
        errors: {},
        shapes: {},
      });
      return { format: "json", source, shortCircuit: true };
    },
  });
  try {
    return new Map(
      (await serviceRows()).flatMap(({ model, operations }): [string, readonly string[]][] =>
        model !== null && empty.has(model.service) ? [[model.service, Object.keys(operations).toSorted()]] : [],
      ),
    );
  } finally {
    hooks.deregister();
  }
}
