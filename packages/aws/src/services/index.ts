/** The AWS services of the platform, with a folder for each service. `service-list.ts` lists all of them. */
export { awsServices, type AwsServicesDependencies } from "./service-list.ts";
