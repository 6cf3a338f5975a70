const binary = { Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40 } as const;
const decimal = { m: 1e-3, k: 1e3, M: 1e6, G: 1e9, T: 1e12 } as const;
const factors: Readonly<Record<string, number>> = { "": 1, ...decimal, ...binary };

/** Parses a Kubernetes quantity, such as `500m`, `2` or `1.5Gi`. Throws if the text is invalid. */
export function parseQuantity(text: string): number {
  const [, digits = "", suffix = ""] = /^([0-9]+(?:\.[0-9]+)?)([a-zA-Z]*)$/.exec(text) ?? [];
  const factor = factors[suffix];
  if (digits === "" || factor === undefined)
    throw new Error(`invalid quantity '${text}': use a number with an optional suffix, such as 500m, 2 or 4Gi`);
  return Number(digits) * factor;
}
