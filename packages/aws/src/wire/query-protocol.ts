import { AwsError, unreachable } from "@galatea/base";
import type { MemberModel, OperationModel, ScalarShape, ServiceModel } from "../spec/index.ts";
import { formatTimestamp, parseTimestamp } from "./timestamp.ts";
import { shapeOf } from "./validate.ts";
import type { XmlContent, XmlElements } from "./xml.ts";

const parametersMax = 20_000;
const nestedMax = 32;

/** A node in the tree of a form with names such as `Foo.member.1.Bar`. Each node has a text, children, or both. */
interface FormNode {
  text: string | null;
  readonly children: Map<string, FormNode>;
}

export interface QueryForm {
  readonly action: string;
  readonly version: string;
  readonly root: FormNode;
}

export function parseForm(body: string): QueryForm {
  const root: FormNode = { text: null, children: new Map() };
  let count = 0;
  for (const [name, value] of new URLSearchParams(body)) {
    count += 1;
    if (count > parametersMax) throw new AwsError("MalformedInput", `More than ${parametersMax} parameters`);
    const segments = name.split(".");
    if (segments.length > nestedMax)
      throw new AwsError("MalformedInput", `Parameter nested more than ${nestedMax} deep`);
    let node = root;
    for (const segment of segments) {
      let child = node.children.get(segment);
      if (child === undefined) {
        child = { text: null, children: new Map() };
        node.children.set(segment, child);
      }
      node = child;
    }
    node.text = value;
  }
  const text = (name: string) => root.children.get(name)?.text ?? "";
  return { action: text("Action"), version: text("Version"), root };
}

export function parseQueryInput(
  model: ServiceModel,
  shapeName: string | undefined,
  form: QueryForm,
): Record<string, unknown> {
  if (shapeName === undefined) return {};
  return fromForm(model, { shape: shapeName }, form.root, "") as Record<string, unknown>;
}

function fromForm(model: ServiceModel, member: MemberModel, node: FormNode, path: string): unknown {
  const shape = shapeOf(model, member.shape);
  switch (shape.type) {
    case "structure": {
      const structure: Record<string, unknown> = {};
      for (const [name, inner] of Object.entries(shape.members)) {
        const child = node.children.get(inner.locationName ?? name);
        if (child !== undefined) structure[name] = fromForm(model, inner, child, `${path}${name}.`);
      }
      return structure;
    }
    case "list": {
      const flat = member.flattened ?? shape.flattened ?? false;
      const items = flat ? node : node.children.get(shape.member.locationName ?? "member");
      return indexed(items).map((item) => fromForm(model, shape.member, item, path));
    }
    case "map": {
      const flat = member.flattened ?? shape.flattened ?? false;
      const map: Record<string, unknown> = Object.create(null) as Record<string, unknown>;
      for (const entry of indexed(flat ? node : node.children.get("entry"))) {
        const key = entry.children.get(shape.key.locationName ?? "key")?.text;
        const value = entry.children.get(shape.value.locationName ?? "value");
        if (typeof key === "string" && value !== undefined) map[key] = fromForm(model, shape.value, value, path);
      }
      return map;
    }
    default:
      return scalarFromText(shape, member, node.text ?? "", path);
  }
}

function indexed(node: FormNode | undefined): FormNode[] {
  return [...(node?.children ?? [])]
    .filter(([index]) => /^\d{1,9}$/.test(index))
    .toSorted(([a], [b]) => Number(a) - Number(b))
    .map(([, child]) => child);
}

function scalarFromText(shape: ScalarShape, member: MemberModel, text: string, path: string): unknown {
  const refuse = (desired: string) =>
    new AwsError(
      "MalformedInput",
      `${path === "" ? "" : `${path.slice(0, -1)}: `}'${text.slice(0, 64)}' is not ${desired}`,
    );
  switch (shape.type) {
    case "boolean":
      if (text !== "true" && text !== "false") throw refuse("a Boolean");
      return text === "true";
    case "integer":
    case "long":
      if (!/^[+-]?\d{1,19}$/.test(text) || !Number.isSafeInteger(Number(text))) throw refuse("an Integer");
      return Number(text);
    case "float":
    case "double":
      if (text.trim() === "" || (Number.isNaN(Number(text)) && text !== "NaN")) throw refuse("a Double");
      return Number(text);
    case "timestamp":
      return parseTimestamp(text, member.timestampFormat ?? shape.timestampFormat);
    case "blob":
      return Buffer.from(text, "base64");
    case "string":
      return text;
    default:
      return unreachable(shape);
  }
}

/** Returns the content of the response's root element, whose name is the operation's name plus `Response`. */
export function queryResult(
  model: ServiceModel,
  operation: OperationModel,
  output: Record<string, unknown>,
  requestId: string,
): XmlElements {
  const result =
    operation.output === undefined ? {} : (toXml(model, { shape: operation.output }, output) as XmlElements);
  const wrapped = operation.resultWrapper === undefined ? {} : { [operation.resultWrapper]: result };
  return { ...wrapped, ResponseMetadata: { RequestId: requestId } };
}

function toXml(model: ServiceModel, member: MemberModel, value: unknown): XmlContent | XmlContent[] {
  const shape = shapeOf(model, member.shape);
  switch (shape.type) {
    case "structure": {
      const elements: Record<string, XmlContent | XmlContent[]> = {};
      for (const [name, inner] of Object.entries(shape.members)) {
        const item = (value as Record<string, unknown>)[name];
        if (item !== undefined && item !== null) elements[inner.locationName ?? name] = toXml(model, inner, item);
      }
      return elements;
    }
    case "list": {
      const items = (value as unknown[]).map((item) => toXml(model, shape.member, item) as XmlContent);
      const flat = member.flattened ?? shape.flattened ?? false;
      return flat ? items : { [shape.member.locationName ?? "member"]: items };
    }
    case "map": {
      const entries = Object.entries(value as Record<string, unknown>).map(([key, item]) => ({
        [shape.key.locationName ?? "key"]: key,
        [shape.value.locationName ?? "value"]: toXml(model, shape.value, item),
      }));
      return (member.flattened ?? shape.flattened ?? false) ? entries : { entry: entries };
    }
    case "timestamp":
      return formatTimestamp(value as Date, member.timestampFormat ?? shape.timestampFormat ?? "iso8601");
    case "blob":
      return Buffer.from(value as Uint8Array).toString("base64");
    case "string":
    case "boolean":
    case "integer":
    case "long":
    case "float":
    case "double":
      return value as string | number | boolean;
    default:
      return unreachable(shape);
  }
}
