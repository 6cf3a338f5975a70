/** The AWS services of the platform, a folder each; `service-list.ts` is the one list of them. */
export { awsServices, type AwsServicesDependencies } from "./service-list.ts";
