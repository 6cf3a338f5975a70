import { invalid, notFound, parseHostingArn, type Hosting } from "../../../hosting/index.ts";
import type { SagemakerInputs } from "../../spec/gen/sagemaker.ts";
import type { SageMakerRows } from "./rows.ts";

const tagCountMax = 50;

export function tagOperations(hosting: Hosting): Pick<SageMakerRows, "AddTags" | "ListTags" | "DeleteTags"> {
  const resource = (input: { readonly ResourceArn: string }) => input.ResourceArn;
  return {
    AddTags: {
      action: "sagemaker:AddTags",
      resource,
      async handle(input) {
        const arn = checkedArn(hosting, input.ResourceArn);
        await putTags(hosting, arn, input.Tags);
        return { Tags: hosting.tags.get(arn) ?? [] };
      },
    },
    ListTags: {
      action: "sagemaker:ListTags",
      resource,
      async handle(input) {
        const arn = checkedArn(hosting, input.ResourceArn);
        return { Tags: hosting.tags.get(arn) ?? [] };
      },
    },
    DeleteTags: {
      action: "sagemaker:DeleteTags",
      resource,
      async handle(input) {
        const arn = checkedArn(hosting, input.ResourceArn);
        const gone = new Set(input.TagKeys);
        const left = (hosting.tags.get(arn) ?? []).filter(({ Key }) => !gone.has(Key));
        await (left.length === 0 ? hosting.tags.delete(arn) : hosting.tags.put(arn, left));
        return {};
      },
    },
  };
}

/** Adds to what is there; a key that is there takes the new value. */
export async function putTags(hosting: Hosting, arn: string, tags: readonly SagemakerInputs["Tag"][]): Promise<void> {
  if (tags.length === 0) return;
  const merged = new Map((hosting.tags.get(arn) ?? []).map((tag) => [tag.Key, tag]));
  for (const tag of tags) merged.set(tag.Key, tag);
  if (merged.size > tagCountMax) throw invalid(`A resource cannot have more than ${tagCountMax} tags.`);
  await hosting.tags.put(arn, [...merged.values()]);
}

function checkedArn(hosting: Hosting, arn: string): string {
  const parsed = parseHostingArn(arn);
  if (parsed === null) throw invalid(`Invalid ARN: ${arn}`);
  const { resource, key } = parsed;
  if (resource === "model") return hosting.models.get(key)?.arn ?? absent(notFound("model", arn));
  if (resource === "endpoint") return hosting.endpoints.get(key)?.arn ?? absent(notFound("endpoint", arn));
  return hosting.configs.get(key)?.arn ?? absent(notFound("endpoint configuration", arn));
}

function absent(error: Error): never {
  throw error;
}
