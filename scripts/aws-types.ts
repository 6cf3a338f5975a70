/**
 * Writes packages/aws/src/spec/gen/<service>.ts from <service>.json: for each operation the type of its input after
 * parsing and checks, and the type of its handler's output. Run: node scripts/aws-types.ts (after a change of this
 * file; aws-spec.ts runs it too)
 */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { unreachable } from "@galatea/base";
import type { ServiceModel, Shape, StructureShape } from "@galatea/aws/spec";
import { specFolder } from "./aws-services.ts";

/** A checked input has all required members and never `undefined`; an output may omit a member with null or undefined. */
type Side = "Input" | "Output";

export function serviceTypes(service: string, model: ServiceModel): string {
  const name = service.replaceAll(/(?:^|-)([a-z])/g, (_, letter: string) => letter.toUpperCase());
  const operations = Object.entries(model.operations).map(
    ([operation, { input, output }]) =>
      `  readonly ${operation}: { readonly input: ${rootType(model, input, "Input")}; readonly output: ${rootType(model, output, "Output")} };\n`,
  );
  const inputs = reached(model, "Input");
  const outputs = reached(model, "Output");
  const nested = inputs.map((shape) => `  readonly ${shape}: ${shape}Input;\n`);
  return [
    `/** Written by scripts/aws-types.ts from ${service}.json. Inputs are as parsed and checked against that model. */\n`,
    `export interface ${name}Operations {\n${operations.join("")}}\n`,
    `\n/** The structures that inputs are made of, by their published names. */\n`,
    `export interface ${name}Inputs {\n${nested.join("")}}\n`,
    ...inputs.map((shape) => structure(model, shape, "Input")),
    ...outputs.map((shape) => structure(model, shape, "Output")),
  ].join("");
}

function rootType(model: ServiceModel, shape: string | undefined, side: Side): string {
  return shape === undefined ? "Readonly<Record<string, never>>" : typeOf(model, shape, side);
}

/** The structures that a side's operations reach, sorted. */
function reached(model: ServiceModel, side: Side): string[] {
  const found = new Set<string>();
  const visit = (name: string): void => {
    const shape = shapeOf(model, name);
    if (shape.type === "list") return visit(shape.member.shape);
    if (shape.type === "map") return visit(shape.value.shape);
    if (shape.type !== "structure" || found.has(name)) return;
    found.add(name);
    for (const member of Object.values(shape.members)) visit(member.shape);
  };
  for (const operation of Object.values(model.operations)) {
    const root = side === "Input" ? operation.input : operation.output;
    if (root !== undefined) visit(root);
  }
  return [...found].toSorted();
}

function structure(model: ServiceModel, name: string, side: Side): string {
  const { members, required = [] } = shapeOf(model, name) as StructureShape;
  const lines = Object.entries(members).map(([member, { shape }]) => {
    const type = typeOf(model, shape, side);
    if (required.includes(member)) return `  readonly ${member}: ${type};\n`;
    return `  readonly ${member}?: ${type}${side === "Input" ? "" : " | null | undefined"};\n`;
  });
  return `\ninterface ${name}${side} {\n${lines.join("")}}\n`;
}

function typeOf(model: ServiceModel, name: string, side: Side): string {
  const shape = shapeOf(model, name);
  switch (shape.type) {
    case "structure":
      return shape.eventstream === true ? `AsyncIterable<${name}${side}>` : `${name}${side}`;
    case "list":
      return `readonly ${itemType(typeOf(model, shape.member.shape, side))}[]`;
    case "map":
      return `Readonly<Record<string, ${typeOf(model, shape.value.shape, side)}>>`;
    case "string":
      // Outputs are not checked: their enumerated values come from records as plain strings.
      if (shape.enum === undefined || side === "Output") return "string";
      return shape.enum.map((value) => JSON.stringify(value)).join(" | ");
    case "timestamp":
      return "Date";
    case "blob":
      return "Uint8Array";
    case "boolean":
      return "boolean";
    case "integer":
    case "long":
    case "float":
    case "double":
      return "number";
    default:
      return unreachable(shape);
  }
}

const itemType = (type: string) => (/[ |]/.test(type) ? `(${type})` : type);

function shapeOf(model: ServiceModel, name: string): Shape {
  const shape = model.shapes[name];
  if (shape === undefined) throw new Error(`${model.service} has no shape ${name}`);
  return shape;
}

if (import.meta.main) {
  for (const file of readdirSync(specFolder).filter((name) => name.endsWith(".json"))) {
    const service = file.slice(0, -".json".length);
    const model = JSON.parse(readFileSync(new URL(`${service}.json`, specFolder), "utf8")) as ServiceModel;
    writeFileSync(new URL(`${service}.ts`, specFolder), serviceTypes(service, model));
  }
}
