import { asServiceModel } from "@galatea/aws/spec";
import { type ModelledService, type OperationRows } from "@galatea/aws/wire";
import parcels from "./spec.json" with { type: "json" };

interface ParcelOperations {
  readonly SendParcel: {
    readonly input: { readonly Grams: number };
    readonly output: { readonly Cents: number };
  };
}

export interface ParcelParts {
  readonly centsPerGram: number;
}

/** A service with one action. */
export function parcelsService({ centsPerGram }: ParcelParts) {
  const operations: OperationRows<ParcelOperations> = {
    SendParcel: {
      handle: ({ Grams: grams }) => Promise.resolve({ Cents: grams * centsPerGram }),
    },
  };
  return {
    kind: "modelled",
    model: asServiceModel(parcels),
    scope: "parcels",
    iamPrefix: "parcels",
    validationCodes: { json: "ValidationException", query: "ValidationError" },
    operations,
  } as const satisfies ModelledService;
}
