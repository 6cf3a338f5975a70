import type { SnsOperations } from "../../spec/gen/sns.ts";
import type { OperationRows } from "../../wire/index.ts";

export type SnsRows = OperationRows<SnsOperations>;
