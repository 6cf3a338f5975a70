import type { ModelledService, RawService, UnsupportedMember, ServiceRow } from "@galatea/aws/wire";
import {
  unsupportedCaptureMembers,
  unsupportedContainerMembers,
  unsupportedSpecMembers,
  unsupportedVariantMembers,
} from "../../packages/aws/src/services/sagemaker/unsupported-members.ts";
import { serviceRows } from "../aws-services.ts";
import { codeSpan, markdownTable, referencePage } from "./markdown.ts";

/** Members of structures within an input, which the operation's own row does not list. */
const innerMembers: Readonly<Record<string, Readonly<Record<string, readonly UnsupportedMember[]>>>> = {
  CreateModel: { "PrimaryContainer, Containers": unsupportedContainerMembers },
  CreateEndpointConfig: {
    "ProductionVariants, ShadowProductionVariants": unsupportedVariantMembers,
    DataCaptureConfig: unsupportedCaptureMembers,
  },
  CreateInferenceComponent: { Specification: unsupportedSpecMembers },
  UpdateInferenceComponent: { Specification: unsupportedSpecMembers },
};

/** Returns the page of every operation of the platform's AWS services, from the rows that the gateway serves. */
export async function operationsPage(): Promise<string> {
  const sections = await Promise.all((await serviceRows()).map(serviceSection));
  return referencePage(
    "AWS operations and their limits",
    "An operation or a member that is not implemented is an error that names it. Members that are not listed here have the effect and the constraints of the published service model.",
    sections,
  );
}

async function serviceSection(service: ServiceRow): Promise<string> {
  return service.kind === "modelled" ? await modelledSection(service) : rawSection(service);
}

async function modelledSection({
  model,
  operations,
  unsupportedOperations: refusals = [],
  scope,
}: ModelledService): Promise<string> {
  const rows = await Promise.all(
    Object.entries(operations).map(async ([name, row]) => {
      const { unsupportedMembers: refuses = [] } = typeof row === "function" ? await row() : row;
      return [name, refusedText(name, refuses)] as const;
    }),
  );
  const advised = refusals.map(({ area, named, advice }) => {
    const isFirst = (name: string) => refusals.find((each) => each.named.test(name))?.named === named;
    const names = model.otherOperations.filter(isFirst);
    return [area, names.map(codeSpan).join(" "), advice];
  });
  const others = model.otherOperations.filter((name) => !refusals.some(({ named }) => named.test(name)));
  return [
    `## ${model.service}`,
    `Signed for ${codeSpan(scope)}; protocols: ${model.protocols.join(", ")}.`,
    markdownTable(["operation", "members that are rejected"], operationRows(rows)),
    ...(advised.length === 0
      ? []
      : [
          "Operations that are rejected, with what to do instead:",
          markdownTable(["area", "operations", "instead"], advised),
        ]),
    ...(others.length === 0 ? [] : [`Not implemented: ${others.map(codeSpan).join(" ")}.`]),
  ].join("\n\n");
}

function rawSection({ scope, protocol, operations }: RawService): string {
  const rows = Object.entries(operations).map(([name, { action }]) => [name, codeSpan(action)] as const);
  const paths = Object.keys(operations).some((name) => name.includes("Chat")) ? ", OpenAI's API" : "";
  return [
    `## ${scope} (${protocol}${paths})`,
    markdownTable(["operation", "permission of a caller"], operationRows(rows)),
  ].join("\n\n");
}

function refusedText(operation: string, refuses: readonly UnsupportedMember[]): string {
  const paths = (members: readonly UnsupportedMember[]) => members.map(({ path }) => codeSpan(path)).join(", ");
  const inner = Object.entries(innerMembers[operation] ?? {}).map(([of, members]) => `in ${of}: ${paths(members)}`);
  return [paths(refuses), ...inner].filter(Boolean).join("; ");
}

const operationRows = (rows: readonly (readonly [name: string, about: string])[]) =>
  rows.toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([name, about]) => [codeSpan(name), about]);
