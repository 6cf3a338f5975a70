import type { Hosting } from "@galatea/hosting";
import type { SageMakerRows } from "./rows.ts";

export function tagOperations(hosting: Hosting) {
  const resource = (input: { readonly ResourceArn: string }) => input.ResourceArn;
  return {
    AddTags: {
      resource,
      async handle(input) {
        return { Tags: await hosting.catalog.addTags(input.ResourceArn, input.Tags) };
      },
    },
    ListTags: {
      resource,
      async handle(input) {
        return { Tags: await hosting.catalog.tags(input.ResourceArn) };
      },
    },
    DeleteTags: {
      resource,
      async handle(input) {
        await hosting.catalog.removeTags(input.ResourceArn, new Set(input.TagKeys));
        return {};
      },
    },
  } satisfies Partial<SageMakerRows>;
}
