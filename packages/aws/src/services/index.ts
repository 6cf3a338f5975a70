/** The AWS services of the platform, a folder each; `service-list.ts` is the one list of them. */
export { awsServices, type AwsServicesParts } from "./service-list.ts";
