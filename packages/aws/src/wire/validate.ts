import { AwsError, assert, unreachable } from "@galatea/base";
import type { ListShape, MapShape, ServiceModel, Shape, StringShape, StructureShape } from "../spec/index.ts";
import { compilePattern, patternInputCharsMax } from "./pattern.ts";

/** Maximum number of violations that are collected and counted in the message. */
const failuresMax = 50;
const shownCharsMax = 1024;

interface Walk {
  readonly model: ServiceModel;
  readonly failures: string[];
}

/**
 * Checks a parsed input against its shape. Throws the service's validation error with every violated constraint, in the
 * wording of Amazon's framework. In it, paths are in lowerCamelCase and list items are `list.1.member`. Violations by
 * the scalars of a list or map are reported for the collection.
 */
export function validateInput(model: ServiceModel, shapeName: string, value: unknown, code: string): void {
  const walk: Walk = { model, failures: [] };
  check(walk, shapeOf(model, shapeName), value, "");
  const count = walk.failures.length;
  if (count === 0) return;
  const found = count === 1 ? "1 validation error detected" : `${count} validation errors detected`;
  throw new AwsError(code, `${found}: ${walk.failures.join("; ")}`, { statusFallback: 400 });
}

export function shapeOf(model: ServiceModel, name: string): Shape {
  const shape = model.shapes[name];
  assert(shape !== undefined, `${model.service} has no shape ${name}`);
  return shape;
}

function check(walk: Walk, shape: Shape, value: unknown, path: string): void {
  if (walk.failures.length >= failuresMax) return;
  switch (shape.type) {
    case "structure":
      return checkStructure(walk, shape, value as Record<string, unknown>, path);
    case "list":
      return checkList(walk, shape, value as unknown[], path);
    case "map":
      return checkMap(walk, shape, value as Record<string, unknown>, path);
    default:
      for (const constraint of failedConstraints(shape, value)) fail(walk, shape, value, path, constraint);
  }
}

function checkStructure(walk: Walk, shape: StructureShape, value: Record<string, unknown>, path: string): void {
  for (const name of shape.required ?? []) {
    if (value[name] !== undefined) continue;
    walk.failures.push(`Value null at '${join(path, name)}' failed to satisfy constraint: Member must not be null`);
  }
  for (const [name, member] of Object.entries(value)) {
    const model = shape.members[name];
    if (model !== undefined) check(walk, shapeOf(walk.model, model.shape), member, join(path, name));
  }
}

function checkList(walk: Walk, shape: ListShape, value: unknown[], path: string): void {
  for (const constraint of failedBounds(shape, value.length)) fail(walk, shape, value, path, constraint);
  const member = shapeOf(walk.model, shape.member.shape);
  if (isScalar(member)) {
    if (!value.some((item) => failedConstraints(member, item).length > 0)) return;
    fail(walk, shape, value, path, `Member must satisfy constraint: [${allConstraints(member).join(", ")}]`);
    return;
  }
  value.forEach((item, index) => check(walk, member, item, `${path}.${index + 1}.member`));
}

function checkMap(walk: Walk, shape: MapShape, value: Record<string, unknown>, path: string): void {
  const entries = Object.entries(value);
  for (const constraint of failedBounds(shape, entries.length)) fail(walk, shape, value, path, constraint);
  const key = shapeOf(walk.model, shape.key.shape);
  if (entries.some(([name]) => failedConstraints(key, name).length > 0)) {
    fail(walk, shape, value, path, `Map keys must satisfy constraint: [${allConstraints(key).join(", ")}]`);
  }
  const member = shapeOf(walk.model, shape.value.shape);
  if (!isScalar(member)) {
    for (const [name, item] of entries) check(walk, member, item, `${path}.${name}.member`);
  } else if (entries.some(([, item]) => failedConstraints(member, item).length > 0)) {
    fail(walk, shape, value, path, `Map value must satisfy constraint: [${allConstraints(member).join(", ")}]`);
  }
}

const isScalar = (shape: Shape): boolean => shape.type !== "structure" && shape.type !== "list" && shape.type !== "map";

function fail(walk: Walk, shape: Shape, value: unknown, path: string, constraint: string): void {
  const shown = shape.sensitive === true ? "Value" : `Value '${bounded(render(value, shownCharsMax + 1))}'`;
  walk.failures.push(`${shown} at '${path}' failed to satisfy constraint: ${constraint}`);
}

function failedConstraints(shape: Shape, value: unknown): string[] {
  switch (shape.type) {
    case "string":
      return failedString(shape, value as string);
    case "integer":
    case "long":
    case "float":
    case "double":
      return failedNumber(shape, value as number);
    case "blob":
      return failedBounds(shape, (value as Uint8Array).byteLength);
    case "boolean":
    case "timestamp":
    case "structure":
    case "list":
    case "map":
      return [];
    default:
      return unreachable(shape);
  }
}

function failedString(shape: StringShape, value: string): string[] {
  const failed = failedBounds(shape, value.length);
  if (shape.enum !== undefined && !shape.enum.includes(value)) failed.push(enumText(shape.enum));
  if (shape.pattern === undefined || failed.length > 0) return failed;
  if (value.length > patternInputCharsMax) return [lengthText("less", patternInputCharsMax)];
  if (patternOf(shape)?.test(value) === false) failed.push(patternText(shape.pattern));
  return failed;
}

function failedNumber(shape: { readonly min?: number; readonly max?: number }, value: number): string[] {
  const failed: string[] = [];
  if (shape.max !== undefined && value > shape.max) failed.push(valueText("less", shape.max));
  if (shape.min !== undefined && value < shape.min) failed.push(valueText("greater", shape.min));
  return failed;
}

function failedBounds(shape: { readonly min?: number; readonly max?: number }, length: number): string[] {
  const failed: string[] = [];
  if (shape.max !== undefined && length > shape.max) failed.push(lengthText("less", shape.max));
  if (shape.min !== undefined && length < shape.min) failed.push(lengthText("greater", shape.min));
  return failed;
}

function allConstraints(shape: Shape): string[] {
  const texts: string[] = [];
  const numeric = shape.type !== "string" && shape.type !== "blob";
  const bound = numeric ? valueText : lengthText;
  if ("max" in shape && shape.max !== undefined) texts.push(bound("less", shape.max));
  if ("min" in shape && shape.min !== undefined) texts.push(bound("greater", shape.min));
  if (shape.type !== "string") return texts;
  if (shape.pattern !== undefined) texts.push(patternText(shape.pattern));
  if (shape.enum !== undefined) texts.push(enumText(shape.enum));
  return texts;
}

const lengthText = (side: "less" | "greater", bound: number) =>
  `Member must have length ${side} than or equal to ${bound}`;
const valueText = (side: "less" | "greater", bound: number) =>
  `Member must have value ${side} than or equal to ${bound}`;
const patternText = (pattern: string) => `Member must satisfy regular expression pattern: ${pattern}`;
const enumText = (values: readonly string[]) => `Member must satisfy enum value set: [${values.join(", ")}]`;

/**
 * Compiled patterns. Each is compiled once per shape of a model; the number of shapes is fixed, which bounds the map.
 */
const compiled = new WeakMap<StringShape, { readonly expression: RegExp | null }>();
function patternOf(shape: StringShape): RegExp | null {
  let entry = compiled.get(shape);
  if (entry === undefined) {
    entry = { expression: compilePattern(shape.pattern ?? "") };
    compiled.set(shape, entry);
  }
  return entry.expression;
}

function join(path: string, member: string): string {
  const name = member.charAt(0).toLowerCase() + member.slice(1);
  return path === "" ? name : `${path}.${name}`;
}

/** Formats a value as Java does, up to at least `charsMax` characters. A value may be megabytes long. */
function render(value: unknown, charsMax: number): string {
  if (Array.isArray(value))
    return `[${renderItems(value.entries(), charsMax, ([, item], left) => render(item, left))}]`;
  if (value instanceof Date) return value.toISOString();
  if (value instanceof Uint8Array) return `<${value.byteLength} bytes>`;
  if (typeof value !== "object" || value === null) return String(value);
  const entries = Object.entries(value).values();
  return `{${renderItems(entries, charsMax, ([key, item], left) => `${key}=${render(item, left)}`)}}`;
}

function renderItems<Item>(
  items: Iterable<Item>,
  charsMax: number,
  renderItem: (item: Item, charsLeft: number) => string,
): string {
  let text = "";
  for (const item of items) {
    if (text.length > charsMax) break;
    text += `${text === "" ? "" : ", "}${renderItem(item, charsMax - text.length)}`;
  }
  return text;
}

const bounded = (text: string) => (text.length <= shownCharsMax ? text : `${text.slice(0, shownCharsMax)}...`);
