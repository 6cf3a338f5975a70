import { AwsError } from "@galatea/base";

const textOf = (token: string) => `The value ${token} for parameter NextToken is invalid.`;

/** Of the operations that have an error of their own for it. */
export const invalidNextToken = (token: string): AwsError => new AwsError("InvalidNextToken", textOf(token));

export const invalidNextTokenValue = (token: string): AwsError => new AwsError("InvalidParameterValue", textOf(token));
