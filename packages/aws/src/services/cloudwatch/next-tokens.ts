import { AwsError } from "@galatea/base";

const textOf = (token: string) => `The value ${token} for parameter NextToken is invalid.`;

/** Returns the error for an invalid token in operations that define InvalidNextToken. */
export const invalidNextToken = (token: string): AwsError => new AwsError("InvalidNextToken", textOf(token));

export const invalidNextTokenValue = (token: string): AwsError => new AwsError("InvalidParameterValue", textOf(token));
