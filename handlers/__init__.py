"""One file for each Lambda function, and so for each IAM role."""
